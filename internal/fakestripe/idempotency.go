package fakestripe

import (
	"net/http"
	"time"

	sdk "github.com/stripe/stripe-go/v86"
)

// keptFor is how long an idempotency key is kept.
const keptFor = 24 * time.Hour

// kept is an idempotency key.
type kept struct {
	path, parameters string
	done             bool
	answer           answer
}

// keep executes a request once for each idempotency key: it repeats the answer of an earlier request, also an error
// 500. It refuses a key that was used for another request, or whose request is under way. The answers of requests that
// were not executed, because of a wrong parameter, are not kept.
func (f *Fake) keep(
	a *account, key, path, parameters string, execute func() answer,
) (result answer, replayed bool) {
	if key == "" {
		return execute(), false
	}
	name := a.key + " " + key
	if k := f.kept[name]; k != nil {
		switch {
		case k.path != path || k.parameters != parameters:
			return refuse(http.StatusBadRequest, sdk.ErrorTypeIdempotency, "",
				"Keys for idempotent requests can only be used with the same parameters they were first used with.",
				""), false
		case !k.done:
			return refuse(http.StatusConflict, sdk.ErrorTypeIdempotency, sdk.ErrorCodeIdempotencyKeyInUse,
				"There is currently another in-progress request using this Idempotent Key", ""), false
		}
		return k.answer, true
	}
	k := &kept{path: path, parameters: parameters}
	f.kept[name] = k
	if f.faults.Slow > 0 { // others find the request under way meanwhile
		f.mu.Unlock()
		time.Sleep(f.faults.Slow)
		f.mu.Lock()
	}
	result = execute()
	if !result.begun {
		delete(f.kept, name)
		return result, false
	}
	k.done, k.answer = true, result
	f.after(keptFor, func() { delete(f.kept, name) })
	return result, false
}
