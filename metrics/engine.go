package metrics

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// Engine contains the instruments of mailboxes, folds, admission and placement.
type Engine struct {
	// BudgetRefusals counts commands refused because the account has reached its budget of stored data, by kind: trial,
	// or growth, which is everything else.
	BudgetRefusals *prometheus.CounterVec
	// BudgetWarnings is the number of owners that this node has decided about lately, and that store four fifths
	// of what their budget allows ordinary growth.
	BudgetWarnings prometheus.Gauge
	// UsageCorrections counts the bytes by which recounts have corrected the usage of accounts, up or down.
	UsageCorrections prometheus.Counter
	// Mailboxes is the number of records with waiting or running commands.
	Mailboxes *FuncGauge
	// CommandsWaiting is the number of commands that wait in mailboxes.
	CommandsWaiting *FuncGauge
	// FoldCommands is the number of commands in a fold.
	FoldCommands prometheus.Histogram
	// Hops counts batches of commands sent to another node, by outcome: answered, not_taken (the node
	// refused the batch or was unreachable) or unknown.
	Hops *prometheus.CounterVec
	// HopCommands counts the commands sent to other nodes, HopCommandsRun the commands of other nodes
	// that this node has run.
	HopCommands, HopCommandsRun prometheus.Counter
	// CommandsUnderWay is the number of waiting or running commands and reads.
	CommandsUnderWay *FuncGauge
	// CommandsLimit is the current limit of CommandsUnderWay.
	CommandsLimit prometheus.Gauge
	// CommandsShed counts the commands and reads that the node has refused under load, by reason:
	//
	//   - limit: the node is full
	//   - owner: the owner has used its share of the node's places
	//   - share: the record has used its share
	//   - mailbox: the record's mailbox is full
	//   - deadline: the deadline would pass before the command runs
	//   - background: nothing waits for the command
	//   - lists: the node reads too many pages of lists
	//   - waits: too many requests wait for events
	//   - pings: the node sends too many test messages to webhook endpoints
	//   - connection: too many connections
	//   - connection_address: an address has used its share of the connections
	//   - bodies: the bodies of requests take too many bytes, or those of an address its share
	//   - responses: the responses of an owner that have not left yet take its share of the bytes
	CommandsShed *prometheus.CounterVec
	// Panics counts recovered panics. The log has the stack of each.
	Panics prometheus.Counter
}

func newEngine(factory promauto.Factory, reg prometheus.Registerer) Engine {
	return Engine{
		BudgetRefusals: vector(factory,
			"licet_budget_refusals_total",
			"Commands refused because the account has reached its budget of stored data, or that of its trials.",
			[]string{"kind"}, each("growth", "trial")...),
		BudgetWarnings: factory.NewGauge(prometheus.GaugeOpts{
			Name: "licet_budget_warned_accounts",
			Help: "Accounts and modes that this node has served lately, and that store four fifths of what " +
				"their budget allows ordinary growth.",
		}),
		UsageCorrections: factory.NewCounter(prometheus.CounterOpts{
			Name: "licet_usage_corrected_bytes_total",
			Help: "Bytes by which recounts have corrected what accounts store, up or down.",
		}),
		Mailboxes: newFuncGauge(reg, "licet_mailboxes", "Records with commands waiting or running on this node."),
		CommandsWaiting: newFuncGauge(reg, "licet_mailbox_commands_waiting", "Commands waiting in mailboxes of this "+
			"node for the ones before them."),
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
		CommandsUnderWay: newFuncGauge(reg, "licet_commands_under_way", "Commands and reads waiting or running on "+
			"this node."),
		CommandsLimit: factory.NewGauge(prometheus.GaugeOpts{
			Name: "licet_commands_limit",
			Help: "Commands and reads that may be under way at present, of one owner half as many. It follows from " +
				"how many a second are served.",
		}),
		CommandsShed: vector(factory,
			"licet_commands_shed_total",
			"Commands and reads refused unexecuted because of too much load.",
			[]string{"reason"}, each("limit", "owner", "share", "mailbox", "deadline", "background", "lists",
				"redactions", "reports",
				"waits", "pings", "credentials", "connection", "connection_address", "bodies", "responses")...),
		Panics: factory.NewCounter(prometheus.CounterOpts{
			Name: "licet_panics_total",
			Help: "Panics caught. Each one is a bug; its stack is in the log.",
		}),
	}
}
