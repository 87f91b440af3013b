package delivery

import (
	"flag"
	"fmt"
	"os"
	"testing"
)

// concurrentTests is how many tests run at once, unless -parallel says otherwise. Tests mostly wait for timers, so
// they are more than the processors. Each has an etcd of its own, since workers that share an etcd share endpoints.
const concurrentTests = "8"

func TestMain(m *testing.M) {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		if err := flag.Set("test.parallel", concurrentTests); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	os.Exit(m.Run())
}
