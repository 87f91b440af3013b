package main

import "fmt"

// failure is an error that ends a measurement. A measurement is one sequence of steps, each of which needs the steps
// before, so stopIf and must panic with the failure, and attempt turns the failure into an error again. Goroutines
// that a measurement starts return their errors: no attempt recovers there.
type failure struct{ error }

// attempt runs steps, and returns the error that has ended them. Another panic goes on.
func attempt(steps func()) (err error) {
	defer func() {
		switch why := recover().(type) {
		case nil:
		case failure:
			err = why.error
		default:
			panic(why)
		}
	}()
	steps()
	return nil
}

// stopIf ends the measurement with an error. A nil error is a no-op.
func stopIf(err error) {
	if err != nil {
		panic(failure{err})
	}
}

// must returns a value, or ends the measurement with an error.
func must[T any](value T, err error) T {
	stopIf(err)
	return value
}

// named runs steps whose error names them.
func named(name string, steps func()) {
	if err := attempt(steps); err != nil {
		stopIf(fmt.Errorf("%s: %w", name, err))
	}
}
