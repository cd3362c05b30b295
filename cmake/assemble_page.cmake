# cmake -DFROM=DIR -DOUT=page.html -P assemble_page.cmake: DIR/index.html with its style sheets and
# scripts put inside, so that the program carries one file and the page makes
# no second request.
cmake_minimum_required(VERSION 3.25)
set(here ${FROM})
file(READ ${here}/index.html page)

string(REGEX MATCHALL "<link rel=\"stylesheet\" href=\"[a-z]+\\.css\">" links "${page}")
foreach(link IN LISTS links)
  string(REGEX REPLACE ".*\"([a-z]+\\.css)\".*" "\\1" name "${link}")
  file(READ ${here}/${name} css)
  string(REPLACE "${link}" "<style>\n${css}</style>" page "${page}")
endforeach()

string(REGEX MATCHALL "<script src=\"[a-z]+\\.js\"></script>" tags "${page}")
foreach(tag IN LISTS tags)
  string(REGEX REPLACE ".*\"([a-z]+\\.js)\".*" "\\1" name "${tag}")
  file(READ ${here}/${name} js)
  string(REPLACE "${tag}" "<script>\n${js}</script>" page "${page}")
endforeach()

# The assembled page may load nothing, not even from its own server.
string(REPLACE " 'self'; script-src 'unsafe-inline' 'self'" "; script-src 'unsafe-inline'" page "${page}")
if(page MATCHES "src=\"|href=\"[a-z]+\\.css")
  message(FATAL_ERROR "a part of the page was not put inside")
endif()
file(WRITE ${OUT} "${page}")
