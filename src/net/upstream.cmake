# Connections to servers behind this one, on the same loop as the server side.
fm_room(net_upstream SOURCES upstream.c lookup.c fetch.c upstream_internal.h
  USES fm_base fm_net fm_net_client PkgConfig::EVENT PkgConfig::EVENT_TLS Threads::Threads)
