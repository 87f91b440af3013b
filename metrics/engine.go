package metrics

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// Engine are the instruments of what runs commands: mailboxes, folds, admission and
// placement.
type Engine struct {
	// Mailboxes counts the records that have commands waiting or running.
	Mailboxes *Sampled
	// CommandsWaiting counts the commands that wait in mailboxes.
	CommandsWaiting *Sampled
	// FoldCommands is how many commands a fold holds.
	FoldCommands prometheus.Histogram
	// Hops counts batches of commands that were sent to another node, by outcome:
	// answered, not_taken (refused, or the node was not reached) or unknown.
	Hops *prometheus.CounterVec
	// HopCommands counts the commands in them, HopCommandsRun those that others
	// have sent and that were run here.
	HopCommands, HopCommandsRun prometheus.Counter
	// CommandsUnderWay counts the commands and reads that are waiting or running.
	CommandsUnderWay *Sampled
	// CommandsLimit is how many may be at present.
	CommandsLimit prometheus.Gauge
	// CommandsShed counts those that were refused because too much was under
	// way, by reason: limit (of the node), owner (who has a share of its places),
	// share (of one record), mailbox (that is full), deadline (that would have passed), background (nobody waits), lists
	// (too many pages of lists are being read), waits (for events), pings (of webhook
	// endpoints) or connection (one too many, which was closed).
	CommandsShed *prometheus.CounterVec
	// Panics counts panics that were caught; each has a stack in the log.
	Panics prometheus.Counter
}

func newEngine(factory promauto.Factory, reg prometheus.Registerer) Engine {
	return Engine{
		Mailboxes:       newSampled(reg, "licet_mailboxes", "Records with commands waiting or running on this node."),
		CommandsWaiting: newSampled(reg, "licet_mailbox_commands_waiting", "Commands waiting in mailboxes of this node for the ones before them."),
		FoldCommands: factory.NewHistogram(histogram(
			"licet_fold_commands",
			"Commands folded into one transaction.",
			prometheus.ExponentialBuckets(1, 2, 10),
		)),
		Hops: vector(factory,
			"licet_hops_total",
			"Batches of commands sent to the node that writes their license.",
			[]string{"outcome"}, each("answered", "not_taken", "unknown")...),
		HopCommands: factory.NewCounter(prometheus.CounterOpts{
			Name: "licet_hop_commands_total",
			Help: "Commands sent to the node that writes their license.",
		}),
		HopCommandsRun: factory.NewCounter(prometheus.CounterOpts{
			Name: "licet_hop_commands_run_total",
			Help: "Commands run for other nodes.",
		}),
		CommandsUnderWay: newSampled(reg, "licet_commands_under_way", "Commands and reads waiting or running on this node."),
		CommandsLimit: factory.NewGauge(prometheus.GaugeOpts{
			Name: "licet_commands_limit",
			Help: "Commands and reads that may be under way at present, of one owner half as many. It follows from how many a second are served.",
		}),
		CommandsShed: vector(factory,
			"licet_commands_shed_total",
			"Commands and reads refused unexecuted because of too much load.",
			[]string{"reason"}, each("limit", "owner", "share", "mailbox", "deadline", "background", "lists", "waits", "pings", "connection")...),
		Panics: factory.NewCounter(prometheus.CounterOpts{
			Name: "licet_panics_total",
			Help: "Panics caught. Each one is a bug; its stack is in the log.",
		}),
	}
}
