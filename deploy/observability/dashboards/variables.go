package dashboards

import (
	"fmt"

	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

// Runbooks is the address of the runbooks, unless the importer of the dashboards sets
// another.
const Runbooks = "https://github.com/licet/licet/blob/main/docs/runbooks"

// variable lists the values of a label. Several may be selected.
type variable struct {
	name, title, about string
	selector           string // of the series
	label              string
	all                string // regular expression of what "All" stands for
}

// Metrics that every node, and every member of etcd, exposes, and no other program.
const (
	build   = "licet_build_info"
	leading = "etcd_server_has_leader"
)

// optional is the "All" of labels that series may lack.
const optional = ".*"

// ofNodes returns the variables of all dashboards. Each variable narrows the choices of the next variables.
func ofNodes() []variable {
	return []variable{
		{"job", "Job", "Prometheus' name for what it scrapes Licet's nodes as.", build, "job", ".+"},
		{"namespace", "Namespace", "Kubernetes namespace. Elsewhere leave it at All.", build + `{job=~"$job"}`,
			"namespace", optional},
		{"pod", "Pod", "Kubernetes pod. Elsewhere leave it at All.", build + `{job=~"$job", namespace=~"$namespace"}`,
			"pod", optional},
		{"instance", "Instance", "Address that a node is scraped at.",
			build + `{job=~"$job", namespace=~"$namespace", pod=~"$pod"}`, "instance", ".+"},
	}
}

// ofMembers returns the variables of the dashboard of etcd, which may run outside the
// nodes' namespace.
func ofMembers() []variable {
	return []variable{
		{"etcd_job", "etcd job", "Prometheus' name for what it scrapes etcd's members as.", leading, "job", ".+"},
		{"etcd_namespace", "etcd namespace", "Kubernetes namespace of etcd. Elsewhere leave it at All.",
			leading + `{job=~"$etcd_job"}`, "namespace", optional},
		{"etcd_instance", "etcd member", "Address that a member is scraped at.",
			leading + `{job=~"$etcd_job", namespace=~"$etcd_namespace"}`, "instance", ".+"},
	}
}

func (v variable) query() string { return fmt.Sprintf("label_values(%s, %s)", v.selector, v.label) }

func (v variable) build() *dashboard.QueryVariableBuilder {
	text := v.query()
	all := true
	return dashboard.NewQueryVariableBuilder(v.name).
		Label(v.title).
		Description(v.about).
		Datasource(datasource()).
		Query(dashboard.StringOrMap{Map: map[string]any{"query": text, "refId": v.name, "qryType": 1}}).
		Definition(text).
		Multi(true).
		IncludeAll(true).
		AllValue(v.all).
		Current(dashboard.VariableOption{
			Selected: &all,
			Text:     dashboard.StringOrArrayOfString{ArrayOfString: []string{"All"}},
			Value:    dashboard.StringOrArrayOfString{ArrayOfString: []string{"$__all"}},
		}).
		Refresh(dashboard.VariableRefreshOnTimeRangeChanged).
		Sort(dashboard.VariableSortAlphabeticalAsc)
}

// datasource returns the Prometheus that is selected at the top.
func datasource() common.DataSourceRef {
	kind, uid := "prometheus", "$datasource"
	return common.DataSourceRef{Type: &kind, Uid: &uid}
}

func datasourceVariable() *dashboard.DatasourceVariableBuilder {
	return dashboard.NewDatasourceVariableBuilder("datasource").
		Label("Data source").
		Description("The Prometheus that scrapes Licet and etcd.").
		Type("prometheus")
}

// runbooksVariable is a hidden constant.
type runbooksVariable struct{}

func (runbooksVariable) Build() (dashboard.VariableModel, error) {
	base, hide := Runbooks, dashboard.VariableHideHideVariable
	built, err := dashboard.NewConstantVariableBuilder("runbooks").
		Label("Runbooks").
		Description("Where the panels' links to runbooks lead.").
		Value(dashboard.StringOrMap{String: &base}).
		Build()
	built.Hide = &hide
	return built, err
}
