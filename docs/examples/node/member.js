// A member of a Holdfast group by hand, for those who write a client: docs/other-languages.md explains each step.
//
//     npm install @grpc/grpc-js @grpc/proto-loader protobufjs
//     node member.js 127.0.0.1:7400 indexers documents [instance id]        (without TLS: a loopback cluster only)
//
// It reads the contract from the repository's folder proto. Copied elsewhere, it has to be told where that is: HOLDFAST_PROTO=/path/to/proto
'use strict';
const crypto = require('node:crypto'), os = require('node:os'), path = require('node:path');
const grpc = require('@grpc/grpc-js'), loader = require('@grpc/proto-loader'), protobuf = require('protobufjs');

const [address, group, topic, instance] = process.argv.slice(2);
const PROTO = process.env.HOLDFAST_PROTO ?? path.join(__dirname, '../../../proto');
const FILES = ['holdfast/v1/group.proto', 'holdfast/v1/admin.proto'];
const api = grpc.loadPackageDefinition(loader.loadSync(FILES, { includeDirs: [PROTO], keepCase: true, longs: String, enums: String, defaults: true })).holdfast.v1;
const root = new protobuf.Root();
root.resolvePath = (_, file) => path.join(PROTO, file);
root.loadSync(FILES, { keepCase: true });
const Subscription = root.lookupType('holdfast.v1.ConsumerProtocolSubscription');
const Assignment = root.lookupType('holdfast.v1.ConsumerProtocolAssignment');

const SESSION_MS = 10_000, REBALANCE_MS = 60_000, BEAT_MS = SESSION_MS / 5, PAUSE_MS = 200;
const ELSEWHERE = ['NOT_COORDINATOR', 'COORDINATOR_LOAD_IN_PROGRESS', 'COORDINATOR_NOT_AVAILABLE'].map((name) => `ERROR_CODE_${name}`);
const AGAIN = [grpc.status.UNAVAILABLE, grpc.status.DEADLINE_EXCEEDED, grpc.status.CANCELLED, grpc.status.ABORTED, grpc.status.RESOURCE_EXHAUSTED];
const now = () => os.uptime() * 1000; // goes on while the machine sleeps, as S11 needs it
const sleep = (ms) => new Promise((done) => setTimeout(done, ms));
const code = (answer) => answer.error_code.replace('ERROR_CODE_', '');

let known = [address], clock = { log: Date.now(), at: now() };
let memberId = '', generation = -1, stopping = false;
let session = SESSION_MS, rebalance = REBALANCE_MS, accepted = -Infinity, allWell = -Infinity; // S11: two send times
const owned = () => now() < Math.min(accepted + 0.8 * session, allWell + 0.8 * rebalance);

function requestId() { // a UUIDv7 at the cluster's log time (S15)
  const time = Math.round(clock.log + now() - clock.at).toString(16).padStart(12, '0'), chance = crypto.randomBytes(10).toString('hex');
  return `${time.slice(0, 8)}-${time.slice(8)}-7${chance.slice(0, 3)}-8${chance.slice(3, 6)}-${chance.slice(6, 18)}`;
}

async function call(service, method, request, deadlineMs, attempts = Infinity) {
  const id = ['JoinGroup', 'LeaveGroup'].includes(method) ? { request_id: requestId() } : {}; // the same in every attempt (S14)
  for (let attempt = 1; ; attempt++) {
    const client = new api[service](known[0], grpc.credentials.createInsecure()), headers = new grpc.Metadata();
    headers.set('holdfast-client-id', 'node-example');
    let trailing = new grpc.Metadata();
    const sent = now();
    const { error, answer } = await new Promise((done) => {
      client[method]({ ...request, holdfast: request.holdfast ?? id }, headers, { deadline: Date.now() + deadlineMs }, (error, answer) => done({ error, answer }))
        .on('status', (status) => { trailing = status.metadata; });
    });
    await new Promise(setImmediate); // the status comes after the answer
    client.close();
    if (error && !AGAIN.includes(error.code)) throw error;
    if (answer?.holdfast?.log_time_ms) clock = { log: Number(answer.holdfast.log_time_ms), at: now() };
    if (!error && !ELSEWHERE.includes(answer.error_code)) return { ...answer, sent };
    if (attempt >= attempts || (stopping && attempts === Infinity)) throw error ?? new Error(`${method}: ${code(answer)}`);
    const leader = trailing.get('holdfast-leader')[0];
    known = leader ? [leader, ...known.filter((each) => each !== leader)] : [...known.slice(1), known[0]];
    await sleep(PAUSE_MS);
  }
}

async function find() { // who leads, and what the cluster's log time is
  const { nodes } = await call('AdminService', 'DescribeCluster', {}, 2_000);
  known = [...new Set([...known, ...nodes.map((node) => node.client_address).filter(Boolean)])];
  await call('GroupService', 'FindCoordinator', { coordinator_keys: [group] }, 2_000);
}

async function join() {
  const metadata = Subscription.encode({ topics: [topic] }).finish();
  const answer = await call('GroupService', 'JoinGroup', { // parked until the join phase ends: asked again each quarter (S17)
    group_id: group, session_timeout_ms: SESSION_MS, rebalance_timeout_ms: REBALANCE_MS, member_id: memberId,
    group_instance_id: instance, protocol_type: 'consumer', protocols: [{ name: 'range', metadata }] }, session / 4);
  if (code(answer) === 'MEMBER_ID_REQUIRED') { memberId = answer.member_id; return join(); }
  if (code(answer) === 'UNKNOWN_MEMBER_ID') { memberId = ''; return join(); }
  if (code(answer) !== 'NONE') throw new Error(`join: ${code(answer)} ${answer.holdfast?.message}`); // fenced, or refused for good
  ({ member_id: memberId, generation_id: generation } = answer);
  session = answer.holdfast.session_timeout_ms; // the timeouts in force count, not those that were asked for (S11)
  rebalance = answer.holdfast.rebalance_timeout_ms;
  return answer;
}

async function assign(members) { // the group leader gives everybody a run of the partitions
  const { topics } = await call('AdminService', 'ListTopics', { names: [topic] }, 5_000);
  const all = [...Array(topics[0]?.num_partitions ?? 0).keys()], each = Math.ceil(all.length / members.length);
  return members.map(({ member_id }, at) => ({ member_id, assignment: Assignment.encode(
    { assigned_partitions: [{ topic, partitions: all.slice(at * each, (at + 1) * each) }] }).finish() }));
}

async function sync(joined) {
  const leads = joined.leader === memberId && !joined.skip_assignment;
  return call('GroupService', 'SyncGroup', { group_id: group, generation_id: generation, member_id: memberId, group_instance_id: instance,
    protocol_type: 'consumer', protocol_name: joined.protocol_name, assignments: leads ? await assign(joined.members) : [] }, session / 4);
}

async function beat(release = false) {
  return call('GroupService', 'Heartbeat', { group_id: group, generation_id: generation, member_id: memberId, group_instance_id: instance,
    holdfast: { release } }, BEAT_MS, release ? 5 : Infinity);
}

async function own() { // heartbeats, until the group wants something else; gives the code that ended it
  for (let next = now(); !stopping; await sleep(Math.max(0, next - now()))) {
    const answer = await beat();
    if (code(answer) === 'NONE') { accepted = allWell = answer.sent; next = answer.sent + BEAT_MS; continue; }
    if (code(answer) === 'REBALANCE_IN_PROGRESS') accepted = answer.sent;
    return code(answer);
  }
  return 'STOPPING';
}

async function main() {
  process.once('SIGTERM', () => { stopping = true; }).once('SIGINT', () => { stopping = true; });
  await find();
  while (!stopping) {
    const synced = await sync(await join());
    if (code(synced) === 'UNKNOWN_MEMBER_ID') memberId = '';
    if (code(synced) !== 'NONE') continue; // another rebalance began: join again
    accepted = allWell = synced.sent;
    const partitions = Assignment.decode(synced.assignment).assigned_partitions.flatMap((each) => each.partitions);
    console.log('owns', JSON.stringify(partitions), 'token', synced.holdfast.fencing_token, 'generation', generation, owned());
    const ended = await own(); // in life: work on the partitions meanwhile, and ask owned() before each write
    console.log('revoked', ended); // the work ends here, before anybody else can have the partitions
    if (ended === 'FENCED_INSTANCE_ID') throw new Error('another process holds this instance id: it must not come back by itself');
    if (ended === 'UNKNOWN_MEMBER_ID') memberId = '';
  }
  if (instance) await beat(true); // a planned restart: keeps the place (S12)
  else await call('GroupService', 'LeaveGroup', { group_id: group, members: [{ member_id: memberId }] }, 2_000, 5);
}

main().catch((error) => { console.error(String(error)); process.exitCode = 1; });
