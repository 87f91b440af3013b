package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestMasterKeysOfEveryone: licet refuses a file of master keys that every user can read, unless the file is on a
// read-only mount.
func TestMasterKeysOfEveryone(t *testing.T) {
	path := ringFile(t)
	for mode, refused := range map[os.FileMode]bool{0o600: false, 0o640: false, 0o644: true, 0o604: true} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		_, err := readMasterRing(path)
		if refused != (err != nil) ||
			refused && !strings.Contains(err.Error(), "every user of this machine can read "+path) {
			t.Errorf("mode %v: %v", mode, err)
		}
	}
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}

	// In a namespace of its own, the shell mounts the folder read-only. Then licet misses another file.
	const notMounted = 77
	const mount = `mount --bind "$1" "$1" && mount -o remount,ro,bind "$1" || exit 77; shift; exec "$@"`
	licet := licetCommand("serve", "--master-key-file", path, "--etcd-endpoints", "unix:///nowhere", "--tls-cert",
		"/nowhere", "--tls-key", "/nowhere")
	command := exec.Command("sh", append([]string{"-c", mount, "sh", filepath.Dir(path)}, licet.Args...)...)
	command.Env = licet.Env
	command.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}},
	}
	out, err := command.CombinedOutput()
	if command.ProcessState == nil || command.ProcessState.ExitCode() == notMounted {
		t.Skipf("this system gives no mounts: %v %s", err, out)
	}
	if !strings.Contains(string(out), "the TLS certificate: stat /nowhere") {
		t.Errorf("on a read-only mount: %v: %s", err, out)
	}
}
