package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"licet/client/webhook"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:9000", "`address` to listen on")
	file := flag.String("seen", "seen.txt", "`file` that stores the ids of seen events")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *listen, *file, os.Getenv("LICET_WEBHOOK_SECRET"), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "webhook-receiver:", err)
		os.Exit(1)
	}
}

// run receives webhooks until ctx ends. secrets are separated by spaces: one, or two while the secret is rotated.
func run(ctx context.Context, listen, file, secrets string, out io.Writer) error {
	receiver, err := webhook.New(strings.Fields(secrets)...)
	if err != nil {
		return fmt.Errorf("LICET_WEBHOOK_SECRET: %w", err)
	}
	seen, err := openSeen(file)
	if err != nil {
		return err
	}
	defer func() { _ = seen.close() }()

	mux := http.NewServeMux()
	mux.Handle("/licet", receiver.Handler(func(_ context.Context, event *webhook.Event) error {
		return seen.once(event.ID, func() error { return show(out, event) })
	}))
	server := &http.Server{
		Handler:      mux,
		ReadTimeout:  10 * time.Second,
		WriteTimeout: 20 * time.Second,
		IdleTimeout:  time.Minute,
	}
	listener, err := net.Listen("tcp", listen)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(out, "listening on http://%s/licet\n", listener.Addr()); err != nil {
		return err
	}
	stopped := make(chan error, 1)
	go func() {
		<-ctx.Done()
		// Shutdown answers the open requests. The service waits 15 seconds for an answer.
		ending, cancel := context.WithTimeout(context.Background(), 15*time.Second)
		defer cancel()
		stopped <- server.Shutdown(ending)
	}()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return <-stopped
}

// show prints an event. A real receiver does its work here.
func show(out io.Writer, e *webhook.Event) error {
	what := ""
	switch {
	case e.Data.Device != nil && e.Data.License != nil:
		what = fmt.Sprintf(" license %s device %q", e.Data.License.LicenseKey, e.Data.Device.DeviceID)
	case e.Data.License != nil:
		what = " license " + e.Data.License.LicenseKey
	case e.Data.Order != nil:
		what = fmt.Sprintf(" order %s %d %s", e.Data.Order.OrderNo, e.Data.Order.Amount, e.Data.Order.Currency)
	}
	_, err := fmt.Fprintf(out, "%s %s %s #%d by %s%s\n",
		e.Timestamp.UTC().Format(time.RFC3339), e.ID, e.Type, e.Sequence, e.Actor, what)
	return err
}
