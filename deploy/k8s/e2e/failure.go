package main

import "fmt"

// failure is an error that ends a step. A step is a sequence of commands, each of which needs the commands before, so
// stopIf and must panic with the failure, and attempt turns the failure into an error again. Goroutines that a step
// starts return their errors: no attempt recovers there.
type failure struct{ error }

// attempt runs commands, and returns the error that has ended them. Another panic goes on.
func attempt(commands func()) (err error) {
	defer func() {
		switch why := recover().(type) {
		case nil:
		case failure:
			err = why.error
		default:
			panic(why)
		}
	}()
	commands()
	return nil
}

// stopIf ends the step with an error. A nil error is a no-op.
func stopIf(err error) {
	if err != nil {
		panic(failure{err})
	}
}

// must returns a value, or ends the step with an error.
func must[T any](value T, err error) T {
	stopIf(err)
	return value
}

// stop ends the step with an error.
func stop(format string, args ...any) { stopIf(fmt.Errorf(format, args...)) }
