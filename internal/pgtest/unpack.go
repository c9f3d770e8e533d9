package pgtest

import (
	"archive/tar"
	"errors"
	"io"
	"os"
	"path"
)

// unpack writes the files and symbolic links of a tar archive into a folder. It writes
// nothing outside of that folder.
func unpack(archive io.Reader, into *os.Root) error {
	reader := tar.NewReader(archive)
	for {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := unpackEntry(reader, header, into); err != nil {
			return err
		}
	}
}

func unpackEntry(content io.Reader, header *tar.Header, into *os.Root) error {
	name := path.Clean(header.Name)
	if header.Typeflag != tar.TypeReg && header.Typeflag != tar.TypeSymlink {
		return nil // a folder is made for its first file
	}
	if err := into.MkdirAll(path.Dir(name), 0o755); err != nil {
		return err
	}
	if header.Typeflag == tar.TypeSymlink {
		return into.Symlink(header.Linkname, name)
	}
	file, err := into.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, header.FileInfo().Mode().Perm())
	if err != nil {
		return err
	}
	_, err = io.Copy(file, content)
	return errors.Join(err, file.Close())
}
