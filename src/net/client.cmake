# The client side of HTTP; knows nothing of the server beside it.
fm_room(net_client SOURCES client.c client_tls.c event_reader.c
  USES fm_base PkgConfig::EVENT PkgConfig::EVENT_TLS PkgConfig::OPENSSL)
