package offline

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// endlessAnswer is what a hostile server sends: its beginning, and the rest again and again, at once or slowly.
type endlessAnswer struct {
	begins, repeats string
	slowly          bool
}

func endlessAnswers() map[string]endlessAnswer {
	return map[string]endlessAnswer{
		"a body":        {"HTTP/1.1 200 OK\r\n\r\n", strings.Repeat(" ", 1<<16), false},
		"a header":      {"HTTP/1.1 200 OK\r\nX-Long: ", strings.Repeat("a", 1<<16), false},
		"headers":       {"HTTP/1.1 200 OK\r\n", strings.Repeat("X-Many: a\r\n", 1<<12), false},
		"a slow header": {"HTTP/1.1 200 OK\r\nX-Long: ", "a", true},
		"a slow body":   {"HTTP/1.1 200 OK\r\n\r\n", " ", true},
	}
}

// endless answers requests without an end. The client gives up soon, and the program goes on with what it has.
func (w *world) endless(t *testing.T) {
	p := w.listed(t)
	for name := range endlessAnswers() {
		w.network.tell(func(f *failures) { f.endless, f.patient = name, false })
		got := p.does("refresh", func(c *call) { c.Ahead, c.RetryFor = firstList, 0 })
		w.network.tell(func(f *failures) {
			if got != good || f.patient {
				t.Errorf("%s without an end: %+v, after more than a minute: %v", name, got, f.patient)
			}
			f.endless = ""
		})
	}
	if got, asked := p.refresh(); got != good || len(asked) != 1 {
		t.Errorf("after that: %+v with %+v, want one list", got, asked)
	}
}

// answerForEver sends an answer until the client closes the connection, or for a minute.
func (f *failures) answerForEver(w http.ResponseWriter, name string) {
	connection, _, err := w.(http.Hijacker).Hijack()
	if err != nil {
		panic(err)
	}
	defer connection.Close()
	answer := endlessAnswers()[name]
	end := time.Now().Add(time.Minute)
	_, err = io.WriteString(connection, answer.begins)
	for err == nil && time.Now().Before(end) {
		_, err = io.WriteString(connection, answer.repeats)
		if answer.slowly {
			time.Sleep(100 * time.Millisecond) // of the server that the test plays
		}
	}
	if err == nil {
		f.tell(func(f *failures) { f.patient = true })
	}
}
