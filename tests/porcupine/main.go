// Judges register histories with Porcupine, so that our own search can be compared with it.
//
// Reads JSON lines, a history each: a list of [kind, value, start, end]; kind "w" or "r". Writes a
// line each: "true" or "false". A register holds 0 at first.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"

	"github.com/anishathalye/porcupine"
)

type access struct {
	write bool
	value int
}

var register = porcupine.Model{
	Init: func() interface{} { return 0 },
	Step: func(state, input, output interface{}) (bool, interface{}) {
		asked := input.(access)
		if asked.write {
			return true, asked.value
		}
		return asked.value == state.(int), state
	},
}

func read(line []byte) ([]porcupine.Operation, error) {
	var rows [][]interface{}
	if err := json.Unmarshal(line, &rows); err != nil {
		return nil, err
	}
	var found []porcupine.Operation
	for number, row := range rows {
		asked := access{row[0].(string) == "w", int(row[1].(float64))}
		start, end := int64(row[2].(float64)), int64(row[3].(float64))
		found = append(found, porcupine.Operation{ClientId: number, Input: asked, Call: start, Return: end})
	}
	return found, nil
}

func main() {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		operations, err := read(lines.Bytes())
		if err != nil {
			fmt.Fprintln(os.Stderr, "not a history:", err)
			os.Exit(1)
		}
		fmt.Println(porcupine.CheckOperations(register, operations))
	}
}
