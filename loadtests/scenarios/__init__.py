"""One module per scenario. load.py finds the modules by itself. A module has

    DESCRIPTION               one line for the help text
    add_options(parser)       adds its own options, with names that no other scenario uses
    run(specs, args, report)  measures the servers `specs` (lib/servers.py) and reports (lib/report.py)
    PROGRAMS                  optional: the targets that ./dev builds for it, beside the usual servers
    CHARTS                    optional: a (metric, title, unit) for each chart in the HTML report
"""
