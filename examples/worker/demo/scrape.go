package demo

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

const scrapeTimeout = 10 * time.Second

var errScrape = errors.New("demo: metrics cannot be read")

// metrics are what a worker exports, by name.
type metrics map[string]*dto.MetricFamily

// scrape reads the metrics of a worker as Prometheus would.
func scrape(ctx context.Context, addr string) (metrics, error) {
	ctx, cancel := context.WithTimeout(ctx, scrapeTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr+"/metrics", http.NoBody)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close() //nolint:errcheck // it was read
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%w: %s", errScrape, response.Status)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(response.Body)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errScrape, err)
	}
	return families, nil
}

// gauge adds up the series of a gauge.
func (m metrics) gauge(name string) int {
	total := 0
	for _, metric := range m[name].GetMetric() {
		total += int(metric.GetGauge().GetValue())
	}
	return total
}

func labelsOf(metric *dto.Metric) map[string]string {
	labels := map[string]string{}
	for _, pair := range metric.GetLabel() {
		labels[pair.GetName()] = pair.GetValue()
	}
	return labels
}
