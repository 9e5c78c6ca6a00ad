"""What Spark itself needs: a Java, a session, a node's log as a table, tasks for the workers."""
