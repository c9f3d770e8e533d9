package pgtest

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"reflect"
	"runtime"
	"slices"
	"strings"

	embeddedpostgres "github.com/fergusstrange/embedded-postgres"
	"github.com/xi2/xz"
)

// mavenVersion is the newest version that embedded-postgres has.
const mavenVersion = embeddedpostgres.V18

var (
	errChecksum  = errors.New("checksum does not match")
	errNoArchive = errors.New("has no .txz file")
)

// maven is the Maven repository that embedded-postgres downloads from.
func (e Environment) maven() origin {
	return origin{
		name: fmt.Sprintf("%s-%s-%s", mavenVersion, runtime.GOOS, runtime.GOARCH),
		bin:  "bin",
		fetch: func(ctx context.Context, _ string, into *os.Root) error {
			address := e.jar()
			jar, err := get(ctx, address)
			if err != nil {
				return err
			}
			sum, err := get(ctx, address+".sha256")
			if err != nil {
				return err
			}
			if got := sha256.Sum256(jar); hex.EncodeToString(got[:]) != strings.TrimSpace(string(sum)) {
				return fmt.Errorf("%s: %w", address, errChecksum)
			}
			if err := unpackJar(jar, into); err != nil {
				return fmt.Errorf("%s: %w", address, err)
			}
			return nil
		},
	}
}

// jar returns the address of the archive for this system.
func (e Environment) jar() string {
	repository := e.Repository
	if repository == "" {
		repository = defaultRepository()
	}
	architecture := runtime.GOARCH
	switch architecture {
	case "arm64":
		architecture = "arm64v8"
	case "386":
		architecture = "i386"
	}
	if _, err := os.Stat("/etc/alpine-release"); err == nil {
		architecture += "-alpine"
	}
	name := fmt.Sprintf("embedded-postgres-binaries-%s-%s", runtime.GOOS, architecture)
	return fmt.Sprintf("%s/io/zonky/test/postgres/%s/%s/%s-%s.jar",
		repository, name, mavenVersion, name, mavenVersion)
}

// defaultRepository returns the repository of embedded-postgres. It is in a field that is
// not exported.
func defaultRepository() string {
	return reflect.ValueOf(embeddedpostgres.DefaultConfig()).FieldByName("binaryRepositoryURL").String()
}

// get returns the content at an address.
func get(ctx context.Context, address string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("get %s: %s", address, response.Status)
	}
	return io.ReadAll(response.Body)
}

// unpackJar unpacks the archive in a jar.
func unpackJar(jar []byte, into *os.Root) error {
	reader, err := zip.NewReader(bytes.NewReader(jar), int64(len(jar)))
	if err != nil {
		return err
	}
	i := slices.IndexFunc(reader.File, func(file *zip.File) bool { return strings.HasSuffix(file.Name, ".txz") })
	if i < 0 {
		return errNoArchive
	}
	packed, err := reader.File[i].Open()
	if err != nil {
		return err
	}
	defer func() { _ = packed.Close() }()
	archive, err := xz.NewReader(packed, 0)
	if err != nil {
		return err
	}
	return unpack(archive, into)
}
