"""Generator of the bundled models: meshes, URDFs, loops files and the table of their figures."""
