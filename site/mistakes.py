"""Command lines and calls with typical mistakes, whose messages are searched for."""

# Command lines with mistakes. `@` stands for tests/data; the folder has the files of `prepare`.
COMMANDS = """
check
check nowhere.pb
check @/rules/empty.pb --tensorflow 9.9
check @/rules/empty.pb --tensorflow 2.x
check @/rules/empty.pb --jax 0.1.0
check @/rules/empty.pb --consumer graph_def
check @/rules/empty.pb --consumer line_of_nobody=3
check @/rules/empty.pb --consumer graph_def=2474 --tensorflow all
check @/rules/empty.pb --kind nonsense
check @/rules/empty.pb --format nonsense
check @/rules/empty.pb --format html=
check @/rules/empty.pb --deny no_such_rule
check @/rules/empty.pb --deny corrupt
check @/rules/empty.pb --custom-op ''
check @/rules/empty.pb --ops nowhere.json
check @/rules/empty.pb --baseline nowhere.toml
check @/rules/empty.pb --config nowhere.toml
check @/rules/empty.pb --against no-such-revision
check --against HEAD -
check @/rules/empty.pb --strict --strict=yes
check @/rules/empty.pb --tensorflow
check --no-such-option
check @/rules/empty.pb -o
explain no_such_rule
explain min_consumr
explain pjrt_putt
inspect nowhere.sds
inspect @/rules/other_kind.pb
inspect
inspect junk.sds
ops 9.9
ops 2.21 NoSuchOperation
ops 2.21 MatMull
ops
versions --as-of yesterday
versions --as-of 2026-13-40
versions --directory nowhere
versions add no_such_line --formats A
versions init --directory .
versions golden --directory nowhere
versions lock --directory nowhere
save --from nowhere.safetensors -o a.sds
save --from @/safetensors/tiny.safetensors
save --from @/safetensors/tiny.safetensors -o a.sds --serdes-version yearly
save --from @/safetensors/tiny.safetensors -o a.sds --serdes-version 999
save --from @/safetensors/tiny.safetensors -o nowhere/a.sds
save --from @/safetensors/tiny.safetensors -o a.sds --device 99
save --from @/safetensors/tiny.safetensors -o a.sds --device minus
save --from @/safetensors/tiny.safetensors -o a.sds --plugin ./nowhere.so
save --from @/safetensors/tiny.safetensors -o a.sds --plugin ./junk.so
save --from @/safetensors/tiny.safetensors -o a.sds --plugin host:devices=none
save --from @/safetensors/tiny.safetensors -o a.sds --plugin host:nonsense=1
save --from @/safetensors/tiny.safetensors -o a.sds --part 4/4 --id x
save --from @/safetensors/tiny.safetensors -o a.sds --part 0/4
save --from @/safetensors/tiny.safetensors -o a.sds --part half
save --from @/safetensors/tiny.safetensors -o a.sds --only 'no/such/*'
save --from @/safetensors/tiny.safetensors -o a.sds --only '['
save --from @/safetensors/tiny.safetensors @/safetensors/tiny.safetensors -o a.sds
save --from junk.txt -o a.sds
save --from a-folder -o a.sds
save --from ftp://host/x -o a.sds
save --from state.sds -o https://127.0.0.1:1/a.sds
restore nowhere.sds
restore junk.sds
restore @/safetensors/tiny.safetensors
restore cut.sds
restore state.sds --only 'no/such/*'
restore state.sds --device 7
restore state.sds --to a.unknown
restore state.sds --to nowhere/a.npz
restore state.sds --to a.npy
restore flipped.sds
merge nowhere.sds --id step-7
merge a.sds
diff state.sds nowhere.sds
diff state.sds junk.txt
diff state.sds
diff state.sds @/rules/empty.pb
diff state.sds state.sds --rtol minus
convert nowhere.pt a.sds
convert junk.txt a.sds
convert state.sds a.unknown
convert state.sds
convert state.sds state.sds
convert state.sds a.safetensors --shard-bytes none
plugin inspect nowhere.so
plugin inspect junk.so
plugin inspect junk.so --tensorflow 1.0
plugin check junk.so
plugin check junk.so --for jaxlib-9.9.9
plugin check junk.so --for nonsense
plugin verify junk.so
plugin verify host --only no_such_behaviour
plugin verify host --level nonsense
abi diff no-such-layout tensorflow-2.14
abi diff tensorflow-2.8
abi diff tensorflow-2.8 junk.json
abi diff tensorflow-2.8 tensorflow-2.14 --allow patch
abi diff tensorflow-2.8 tensorflow-2.14 --allow nonsense
negotiate 127.0.0.1:1
negotiate nonsense
negotiate 127.0.0.1:1 --protocol 9..3
negotiate 127.0.0.1:1 --token-file nowhere
negotiate 127.0.0.1:1 --tls-ca nowhere.pem
serve --listen nonsense
serve --listen 0.0.0.0:0
serve --listen 127.0.0.1:0 --token-file nowhere
serve --listen 127.0.0.1:0 --token-file short-token
serve --listen 127.0.0.1:0 --tls-cert nowhere.pem
serve --listen 127.0.0.1:0 --limit nonsense=1
serve --listen 127.0.0.1:0 --limit sessions=none
serve --listen 127.0.0.1:0 --limit sessions
serve --listen 127.0.0.1:0 --state nowhere/a.sds
serve --listen 127.0.0.1:0 --state junk.sds
serve --listen 127.0.0.1:0 --plugin ./nowhere.so
serve --listen 127.0.0.1:0 --protocol 1..2
serve --listen 127.0.0.1:0 --state-keep 3
serve --listen 127.0.0.1:0 --metrics nonsense
serve --listen 127.0.0.1:0 --allow-compile-option xla_backend_extra_options
doctor nowhere
doctor --env a-folder
doctor --lock junk.txt
doctor --python nowhere/python
completions nonsense
man --directory junk.txt
matrix --format nonsense
config --config junk.toml
config --config bad.toml
chekc state.sds
check state.sds --jax 0.7.0
check state.sds --jax lates
check state.sds --jax jaxlib-0.12.0.1
check state.sds --tensorflow 2.21..2.12
check state.sds --exclude '['
check state.sds --write-baseline nowhere/known.jsonl
check state.sds --format junit=nowhere/report.xml
check state.sds --baseline junk.txt
inspect state.sds --signatures
inspect state.sds --kind nonsense
restore state.sds --to - --to-kind nonsense
restore cut.sds --salvage
restore state.sds --to a-folder
convert state.sds --to-stablehlo 1.16 -o a.mlirbc
convert @/kinds/f.mlirbc --to-stablehlo 0.1 -o a.mlirbc
convert @/kinds/f.mlirbc --to-stablehlo new -o a.mlirbc
convert @/kinds/f.mlirbc --kind ArraySpec --to-serdes 3 -o a.binpb
convert state.sds s3://
diff state.sds state.sds --atol -1
save --from state.sds -o a.sds --plugin host:devices=0
save --from state.sds -o a.sds --time-limit never
merge state.sds --id step-7
plugin verify host --known-failures nowhere.txt
plugin verify host --format nonsense
plugin check host --for tensorflow-2.21
plugin check host --for jaxlib-0.12
plugin inspect host --tensorflow 9.9
abi diff tensorflow-2.8 nowhere.h
ops 2.21 2.99
versions release --directory a-folder
serve --listen 127.0.0.1:0 --drain soon
serve --listen 127.0.0.1:0 --tls-cert junk.txt --tls-key junk.txt
serve --listen 127.0.0.1:0 --plugin ./junk.so
serve --listen 127.0.0.1:0 --serdes 0..99
serve --listen 127.0.0.1:0 --log-format xml
serve --listen 127.0.0.1:0 --stablehlo-bridge nowhere/python
doctor --env a-folder --format nonsense
negotiate 127.0.0.1
negotiate 'listening on 127.0.0.1:1'
man --directory state.sds/x
"""

# Requests that are refused by a server without TLS that requires a token and has the protocols 20
# to 25; `%` stands for its address.
REFUSED = """
negotiate %
negotiate % --token-file another-token
negotiate % --token-file tokens --protocol 16..18
negotiate % --token-file tokens --protocol 26..30
negotiate % --token-file tokens --serdes 7..9
negotiate https://% --token-file tokens
negotiate https://% --token-file tokens --tls-ca junk.txt
"""

# Calls with mistakes.
CALLS = """
sd.load_file("nowhere.sds")
sd.load_file("junk.sds")
sd.load_file("cut.sds")
sd.load_file("flipped.sds")
sd.load_file("state.sds", framework="tensorflow")
sd.load_file(b"state.sds")
sd.load_file("a\\0b")
sd.load_file("a-folder")
sd.load_file("s3://")
sd.load_file("ftp://host/x")
sd.save_file({"w": 3}, "a.sds")
sd.save_file({"w": "text"}, "a.sds")
sd.save_file({"w": numpy.array([object()])}, "a.sds")
sd.save_file([numpy.ones(2)], "a.sds")
sd.save_file({1: numpy.ones(2)}, "a.sds")
sd.save_file({"w": numpy.ones(2)}, "nowhere/a.sds")
sd.save_file({"w": numpy.ones(2)}, "a.sds", serdes_version="weekly")
sd.save_file({"w": numpy.ones(2)}, "a.sds", serdes_version=999)
sd.save_file({"w": numpy.ones(2)}, "a.sds", serdes_version=1.5)
sd.save_file({"w": numpy.ones(2)}, "a.sds", metadata={"step": 7})
sd.save_file({"w": numpy.ones(2)}, "a.sds", metadata=[1])
sd.save_file({"w": numpy.ones(2)}, "https://127.0.0.1:1/a.sds")
sd.safe_open("state.sds", framework="np").get_tensor("no/such")
sd.safe_open("state.sds").get_slice("w")["x"]
sd.safe_open("state.sds").get_slice("w")[::-1]
sd.safe_open("state.sds").get_slice("w")[0, 0, 0, 0, 0]
sd.safe_open("state.sds").get_slice("w")[9999]
sd.check("nowhere.pb", tensorflow="9.9")
sd.check("state.sds", jax="0.1.0")
sd.check("state.sds", kind="nonsense")
sd.check("state.sds", tensorflow=2)
sd.inspect("nowhere.sds")
sd.inspect("junk.txt")
sd.diff("state.sds", "nowhere.sds")
sd.convert("junk.txt", "a.sds")
sd.convert("state.sds", "a.unknown")
sd.convert("nowhere.pt", "a.sds")
sd.doctor("nowhere")
sd.doctor(lock="junk.txt")
sdj.save("a.sds", {"w": object()})
sdj.save("a.sds", {"w": jnp.ones(2)}, serdes_version="weekly")
sdj.load("nowhere.sds")
sdj.load("junk.sds")
sdj.load("state.sds", like={"no": numpy.ones(2)})
sdj.load("state.sds", like={"w": jax.ShapeDtypeStruct((3,), jnp.float32)})
sdj.Steps("run", keep=0)
sdj.Steps("run").load(7)
sdj.Steps("run").best()
sdj.Steps("run").save(-1, {})
sdj.connect("nonsense")
sdj.connect("127.0.0.1:1", timeout=0.2)
sdj.connect("127.0.0.1:1", token="short token with blanks", timeout=0.2)
sdj.connect("gpu-1.example:7171", token="0123456789abcdef0123")
sdj.connect("https://127.0.0.1:1", tls_ca="nowhere.pem", timeout=0.2)
sdj.connect("127.0.0.1:1", tls_cert="nowhere.pem", timeout=0.2)
sd.check_all("nowhere", jax="lates")
sd.check("state.sds", loader="nonsense")
sd.diff("state.sds", "state.sds", rtol=-1)
sd.load(b"this is no file of any kind")
sd.load_file("state.sds", only=["no/such/*"])
sd.convert("state.sds", "a.safetensors", shard_bytes=-1)
sdj.Steps("run", keep_best=2)
sdj.Steps("run").delete(7)
sdj.Steps("junk.txt").all()
"""
