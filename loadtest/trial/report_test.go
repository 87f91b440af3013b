package trial

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"licet/loadtest/stage"
)

func TestReport(t *testing.T) {
	var tally Tally
	tally.Did("rounds")
	tally.Did("answers")
	tally.Did("answers")
	tally.Problem("answer %d was %q", 2, "none")
	r := tally.Report()
	r.Seed = 7
	r.CountTraffic(stage.Traffic{Sent: []int64{1, 2}, Unanswered: 3, Moved: 4})
	r.Line("ROUND", "ASKED", "ANSWERED", "")
	r.Line("first", 2, 1, "DIFFERS")
	r.Note(nil)
	r.Note(errors.New("the bell is broken"))
	var out bytes.Buffer
	if err := r.Print(&out, 61*time.Second+3); err != nil {
		t.Fatal(err)
	}
	const want = `DONE                                              TIMES
answers                                           2
rounds                                            1
requests sent to each node                        [1 2]
requests that got no answer, and were repeated    3
requests that a node refused, and another served  4

ROUND  ASKED  ANSWERED  
first  2      1         DIFFERS
WRONG: answer 2 was "none"
WRONG: the bell is broken

seed 7, 1m1s: WRONG: 2
`
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", &out, want)
	}
}
