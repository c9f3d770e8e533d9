package main

// each returns a tool for each database: all those of the mapping file, or one.
func (t *tool) each() ([]*tool, error) {
	path, err := findFile(t.config)
	if err != nil {
		return nil, err
	}
	if path == "" || t.embedded || t.database != "" {
		return []*tool{t}, t.load()
	}
	f, err := readMappingFile(path)
	if err != nil {
		return nil, err
	}
	for _, name := range t.confirmed {
		if f.Databases[name] == nil {
			return nil, misused("--confirm %s: there is no such database", name)
		}
	}
	return t.eachOf(f)
}

// eachOf returns a tool for each database of a file.
func (t *tool) eachOf(f *file) ([]*tool, error) {
	var tools []*tool
	for _, name := range f.names() {
		one := *t
		one.database = name
		if err := one.load(); err != nil {
			return nil, err
		}
		tools = append(tools, &one)
	}
	if len(tools) > 1 && t.url != "" {
		return nil, misused("--database-url is for one database; choose it with --database")
	}
	return tools, nil
}
