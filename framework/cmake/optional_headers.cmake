# Public headers that need a library which Tuza itself does not use. Their own tests compile them.
set(tuza_optional_headers "/(boost_[a-z_]+|nlohmann_json|postgres(_pool)?)\\.h$")
