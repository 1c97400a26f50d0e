# cmake -DOUTPUT=FILE -DTABLE=NAME -DINPUTS=A,B,... -P embed.cmake: the files as arrays of a C source,
# so that the tool has them wherever it is installed.
string(REPLACE "," ";" INPUTS "${INPUTS}")
set(arrays "")
set(rows "")
foreach(input ${INPUTS})
  get_filename_component(name "${input}" NAME)
  string(MAKE_C_IDENTIFIER "${name}" identifier)
  file(READ "${input}" bytes HEX)
  string(REGEX REPLACE "(..)" "0x\\1," bytes "${bytes}")
  string(REGEX REPLACE "(................................................................................)" "\\1\n"
         bytes "${bytes}")
  string(APPEND arrays "static const unsigned char ${identifier}[] = {\n${bytes}\n};\n\n")
  string(APPEND rows "    {\"${name}\", ${identifier}, sizeof ${identifier}},\n")
endforeach()
file(WRITE "${OUTPUT}"
     "#include \"bench/bench.h\"\n\n${arrays}"
     "const cohi_bench_source ${TABLE}[] = {\n${rows}    {NULL, NULL, 0},\n};\n")
