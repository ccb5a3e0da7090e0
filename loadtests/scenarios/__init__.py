"""One module per scenario. load.py finds them by itself; a module has

    DESCRIPTION               one line for the help text
    add_options(parser)       options of its own, whose names no other scenario has
    run(specs, args, report)  measures the servers `specs` (lib/servers.py) and reports (lib/report.py)
    CHARTS                    optional: (metric, title, unit)s, what the HTML report draws of its records
"""
