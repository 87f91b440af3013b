package cluster

import (
	"errors"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

const (
	startTimeout   = 90 * time.Second // of each program
	stopTimeout    = 20 * time.Second
	requestTimeout = 30 * time.Second
)

// Cluster is a running API server.
type Cluster struct {
	// URL is the address of the server. CA is the certificate of its authority, in PEM.
	URL string
	CA  []byte

	programs *envtest.Environment
	config   *rest.Config // the administrator's
	admin    client.Client
}

// Start starts etcd and the API server from a folder of programs, and waits until the server serves the custom
// resources that files define. The caller must call Stop, also after an interrupt: the programs do not end with this
// process.
func Start(programs string, definitions ...string) (_ *Cluster, err error) {
	c := &Cluster{programs: &envtest.Environment{
		BinaryAssetsDirectory: programs, UseExistingCluster: new(bool), CRDDirectoryPaths: definitions,
		ErrorIfCRDPathMissing: true, ControlPlaneStartTimeout: startTimeout, ControlPlaneStopTimeout: stopTimeout,
	}}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.Stop())
		}
	}()
	c.programs.ControlPlane.GetAPIServer().Configure().Set("service-cluster-ip-range", "10.96.0.0/16")
	if c.config, err = c.programs.Start(); err != nil {
		return nil, err
	}
	c.config.QPS, c.config.Timeout, c.config.WarningHandlerWithContext = -1, requestTimeout, warningHandler{}
	c.URL, c.CA = c.config.Host, c.config.CAData
	c.admin, err = client.New(c.config, client.Options{})
	return c, err
}

// Stop ends both programs and removes what they have written.
func (c *Cluster) Stop() error { return c.programs.Stop() }
