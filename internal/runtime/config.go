// Package runtime is what the processes of this project share when they start:
// flags, configuration file, environment, logs, clients and the version. It
// links no cloud SDK.
package runtime

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"regexp"
	"strconv"

	"sigs.k8s.io/yaml"
)

// Config is the configuration of bridge and worker: the file given by --config,
// overridden by environment variables. Every field may be empty.
type Config struct {
	// Gardener says where the garden is.
	Gardener GardenerConfig `json:"gardener,omitempty"`
	// ConfigService says where the config-service is.
	ConfigService ConfigServiceConfig `json:"configService,omitempty"`
	// AWS holds settings of the AWS clients.
	AWS AWSConfig `json:"aws,omitempty"`
	// Env tags every external resource, so that several environments can share
	// a cloud account. Default "dev". Env INFRA_ENV.
	Env string `json:"env,omitempty"`
	// Webhooks says whether admission webhooks are wanted. Only by the variable
	// ENABLE_WEBHOOKS; default true.
	Webhooks bool `json:"-"`
}

// GardenerConfig says where the garden is.
type GardenerConfig struct {
	// KubeconfigPath of the garden's API server. Env GARDENER_CONFIG.
	KubeconfigPath string `json:"kubeconfigPath,omitempty"`
	// ProjectName is the project of Providers that name none. Up to 10
	// characters; default "core". Its namespace is garden-<project>.
	ProjectName string `json:"projectName,omitempty"`
}

// ConfigServiceConfig says where the config-service is.
type ConfigServiceConfig struct {
	// URL such as http://config-service.infra:8080. Env CONFIG_SERVICE_URL.
	URL string `json:"url,omitempty"`
}

// AWSConfig holds settings of the AWS clients.
type AWSConfig struct {
	// Endpoint replaces the endpoints of all AWS services, for an emulator.
	// Env AWS_ENDPOINT_URL. Empty in production.
	Endpoint string `json:"endpoint,omitempty"`
}

// LoadConfig reads the file at path (none when empty), checks it, lets the
// environment override it, fills defaults and checks again. getenv is os.Getenv.
func LoadConfig(path string, getenv func(string) string) (Config, error) {
	c := Config{Webhooks: true}
	if path != "" {
		data, err := os.ReadFile(path)
		if err != nil {
			return c, fmt.Errorf("--config: %w", err)
		}
		// Strict: a misspelt key is a mistake, not a comment.
		if err := yaml.UnmarshalStrict(data, &c); err != nil {
			return c, fmt.Errorf("--config %s: %w", path, err)
		}
		if err := c.Validate(); err != nil {
			return c, fmt.Errorf("--config %s: %w", path, err)
		}
	}
	if err := c.override(getenv); err != nil {
		return c, fmt.Errorf("environment: %w", err)
	}
	c.setDefaults()
	if err := c.Validate(); err != nil {
		return c, fmt.Errorf("environment: %w", err)
	}
	return c, nil
}

func (c *Config) override(getenv func(string) string) error {
	for name, field := range map[string]*string{
		"GARDENER_CONFIG":    &c.Gardener.KubeconfigPath,
		"CONFIG_SERVICE_URL": &c.ConfigService.URL,
		"AWS_ENDPOINT_URL":   &c.AWS.Endpoint,
		"INFRA_ENV":          &c.Env,
	} {
		if value := getenv(name); value != "" {
			*field = value
		}
	}
	if value := getenv("ENABLE_WEBHOOKS"); value != "" {
		on, err := strconv.ParseBool(value)
		if err != nil {
			return fmt.Errorf("ENABLE_WEBHOOKS is %q, want true or false", value)
		}
		c.Webhooks = on
	}
	return nil
}

func (c *Config) setDefaults() {
	if c.Gardener.ProjectName == "" {
		c.Gardener.ProjectName = "core"
	}
	if c.Env == "" {
		c.Env = "dev"
	}
}

var (
	projectName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,8}[a-z0-9])?$`)
	// envName is what the tags of every cloud accept (Google labels are the
	// strictest).
	envName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,30}[a-z0-9])?$`)
)

// Validate checks the form of every field that is set. It opens nothing.
func (c *Config) Validate() error {
	var errs []error
	if p := c.Gardener.ProjectName; p != "" && !projectName.MatchString(p) {
		errs = append(errs, fmt.Errorf("gardener.projectName is %q, want a DNS label of up to 10 characters", p))
	}
	if c.Env != "" && !envName.MatchString(c.Env) {
		errs = append(errs, fmt.Errorf("env is %q, want a lower-case DNS label of up to 32 characters", c.Env))
	}
	for field, value := range map[string]string{"configService.url": c.ConfigService.URL, "aws.endpoint": c.AWS.Endpoint} {
		if value == "" {
			continue
		}
		u, err := url.Parse(value)
		if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
			// The value is not repeated: it might carry a password.
			errs = append(errs, fmt.Errorf("%s is not an http:// or https:// address", field))
			continue
		}
		if u.User != nil {
			errs = append(errs, fmt.Errorf("%s must not contain credentials", field))
		}
	}
	return errors.Join(errs...)
}
