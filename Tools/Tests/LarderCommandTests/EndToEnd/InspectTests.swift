import Foundation
import HTTPTypes
import Larder
import LarderHTTPCache
import LarderLMDB
import Testing

@testable import LarderCommand
@testable import StoreAccess

/// Tests of `larder inspect`, which starts another program.
@Suite struct InspectTests {
  private let folder: TemporaryFolder

  init() throws {
    folder = try TemporaryFolder()
  }

  @Test func `the program is beside the tool or in PATH`() throws {
    try FileManager.default.createDirectory(atPath: folder.file("bin"), withIntermediateDirectories: true)
    let program = try folder.write("#!/bin/sh\n", to: "bin/larder-inspect")
    let tool = folder.file("tool/larder")
    #expect(InspectCommand.path(beside: tool, search: "") == nil)
    #expect(InspectCommand.path(beside: tool, search: folder.file("bin")) == nil, "it cannot be run")
    try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: program)
    #expect(InspectCommand.path(beside: tool, search: "/nowhere:\(folder.file("bin"))") == program)
    #expect(InspectCommand.path(beside: folder.file("bin/larder"), search: "")?.hasSuffix("bin/larder-inspect") == true)
    #expect(InspectCommand.path(beside: nil, search: "bin:.") == nil)
  }

  @Test func `without the program the message says how to build it`() async throws {
    let run = try await Tool.shell(
      "cp \(Tool.path) \"$1/larder-copy\"; PATH=/nowhere \"$1/larder-copy\" inspect json:users.json", folder.path)
    #expect(
      run.failed(66, "larder-inspect is neither beside larder nor in a folder of PATH. Build it with `make inspect`"))
  }

  @Test(
    arguments: [
      ([], 64, "Missing expected argument"), (["json:none.json"], 66, "none.json"),
      (["json:a", "json:b", "--queue", "jobs/"], 64, "--queue needs exactly one store"),
      (["json:a", "json:b", "--http-cache", "http/"], 64, "--http-cache needs exactly one store"),
      (["json:a", "--http-cache", ""], 64, "--http-cache is empty"),
      (["json:a", "json:b", "--salvage-to", "json:c"], 64, "--salvage-to needs exactly one store"),
      (["json:a", "--salvage-to", "json:b", "--write"], 64, "--salvage-to leaves the damaged store as it is"),
      (["json:a", "--salvage-to", "json:a"], 64, "a store cannot be salvaged into itself"),
      (["json:a", "--address", "0.0.0.0"], 64, "0.0.0.0 is not a loopback address"),
      (["json:a", "--address", "::"], 64, ":: is not a loopback address"),
      (["json:a", "--address", "192.168.1.1"], 64, "192.168.1.1 is not a loopback address"),
      (["json:a", "--address", "127.0.0.1.example.com"], 64, "127.0.0.1.example.com is not a loopback address"),
    ] as [([String], Int32, String)])
  func `arguments are checked`(arguments: [String], status: Int32, message: String) async throws {
    let run = try await ToolRun.run(Tool.path, ["inspect"] + arguments)
    #expect(run.status == status)
    #expect(
      run.errors.hasPrefix("larder-inspect: \(message)") || run.errors.contains(message) && status == 66, "\(run)")
    #expect(run.output.isEmpty)
  }

  @Test(
    arguments: [
      (["--login-password-file", "long"], "--certificate and --private-key, --host"),
      (["--certificate", "c.pem", "--private-key", "k.pem", "--host", "a"], "--login-password-file"),
      (["--certificate", "c.pem", "--private-key", "k.pem", "--login-password-file", "long"], "--host"),
      (["--certificate", "c.pem", "--login-password-file", "long", "--host", "a"], "belong together"),
    ])
  func `other machines need all of TLS a password and a name`(options: [String], message: String) async throws {
    let run = try await ToolRun.run(Tool.path, ["inspect", "json:a", "--address", "0.0.0.0"] + options)
    #expect(run.status == 64 && run.errors.contains(message) && run.output.isEmpty, "\(run)")
  }

  /// The browser of another machine logs in with a password through TLS.
  @Test func `a password opens a session through TLS`() async throws {
    let script = """
      set -e; cd "$1"
      larder set json:users.json ada '{"name":"Ada"}'
      openssl req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out chain.pem -days 2 -subj /CN=stores.example 2> openssl
      echo short > short; echo 'correct horse battery' > password
      tool=$2
      remote() { "$tool" inspect json:users.json --address 0.0.0.0 --host stores.example --certificate chain.pem "$@"; }
      remote --private-key key.pem --login-password-file short 2>&1 || echo $?
      remote --private-key key.pem --login-password-file none 2>&1 | grep -c 'cannot read the password' || true
      remote --private-key password --login-password-file password 2>&1 | grep -c 'cannot use the certificate' || true
      "$2" inspect json:users.json --address 0.0.0.0 --host stores.example --certificate chain.pem --private-key key.pem \
        --login-password-file password > address 2> messages & program=$!
      trap 'kill $program' EXIT
      for i in $(seq 600); do grep -q token address && break; sleep 0.1; done
      address=$(cat address); base=${address%%\\?*}; port=${base##*:}; port=${port%/}
      get() { curl -sk --resolve "stores.example:$port:127.0.0.1" -o page -w '%{http_code} ' "$@"; }
      get "${base}keys?store=0"; grep -c 'type="password"' page
      get -H "Origin: ${base%/}" -d 'password=wrong' "${base}login"
      sleep 1.2
      get -c jar -H "Origin: ${base%/}" --data-urlencode 'password=correct horse battery' "${base}login"
      get -b jar "${base}entry?store=0&key=616461"; grep -c Ada page
      get -b jar -H 'Host: evil.example' "$base"
      curl -s -o page "http://127.0.0.1:$port/" || echo "no plain text"
      echo "${base%%:*}"
      """
    let run = try await Tool.shell(script, folder.path, Tool.path)
    #expect(
      run.output == """
        larder-inspect: the password must have at least 12 characters, not 5. The first line of short is the password.
        64
        1
        1
        401 1
        401 303 200 1
        421 no plain text
        https

        """, "\(run.errors)")
  }

  /// The cache is one that no program has open, so the pages remove responses by a cache of their own.
  @Test func `an HTTP cache is shown and responses are removed`() async throws {
    let store = try await LMDBStore<[UInt8]>(path: folder.file("proxy"), codec: .raw)
    let cache = try await HTTPCache(store, configuration: .shared)
    for path in ["/a", "/b"] {
      let request = HTTPRequest(method: .get, scheme: "https", authority: "api.example", path: path)
      let response = try await cache.response(to: request) { _ in
        HTTPForwardedResponse(
          head: HTTPResponse(status: .ok, headerFields: [.cacheControl: "max-age=86400"]), body: Array("Hello".utf8))
      }
      for try await _ in response.body {}
      _ = try await cache.response(to: request, policy: .cacheOnly) { _ in throw CancellationError() }
    }
    try await store.close()
    let script = """
      set -e; cd "$1"
      "$2" inspect lmdb:proxy --http-cache none/ 2>&1 || true
      "$2" inspect lmdb:proxy --http-cache http/ --write > address 2> messages & program=$!
      trap 'kill $program' EXIT
      for i in $(seq 600); do grep -q token address && break; sleep 0.1; done
      address=$(cat address); base=${address%%\\?*}
      get() { curl -s -b jar "$@"; }
      get -c jar -o page "$address"
      get "${base}http?store=0" | grep -o '>https://api.example/.<' | tr -d '\\n'
      get "${base}response?store=0&url=https://api.example/a" | grep -c 'Answered from the store.'
      get -o page -w '%{http_code}\\n' -H "Origin: ${base%/}" \
        -d 'store=0&action=removeURL&url=https://api.example/a&confirmed=yes' "${base}change"
      get "${base}response?store=0&url=https://api.example/a" | grep -c 'No response is stored for this URL'
      get "${base}http?store=0" | grep -o '>https://api.example/.<'
      kill $program; wait $program || true; trap - EXIT
      larder http list lmdb:proxy --json | wc -l
      """
    let run = try await Tool.shell(script, folder.path, Tool.path)
    #expect(
      run.output == """
        larder-inspect: lmdb:proxy has no HTTP cache with the prefix none/. Check --http-cache; a program that uses the cache creates it.
        >https://api.example/a<>https://api.example/b<1
        303
        1
        >https://api.example/b<
        1

        """, "\(run.errors)")
  }

  /// Starts the program, and asks it for pages as a browser does.
  @Test(arguments: [false, true]) func `a store is shown`(isWritable: Bool) async throws {
    let script = """
      set -e; cd "$1"
      larder set json:users.json ada '{"name":"Ada"}'
      "$3" inspect json:users.json $2 > address 2> messages & program=$!
      trap 'kill $program' EXIT
      for i in $(seq 600); do grep -q token address && break; sleep 0.1; done
      address=$(cat address); base=${address%%\\?*}
      get() { curl -s -o page -w '%{http_code} ' "$@"; }
      get "${base}keys?store=0"
      get -c jar "$address"
      get -c jar2 "$address"
      get -b jar "${base}entry?store=0&key=616461"; grep -c Ada page
      get -b jar -H 'Host: evil.example' "$base"
      removal='store=0&action=remove&key=616461&confirmed=yes'
      shown=$(sed -n 's/.*name="shown" value="\\([0-9a-f]*\\)".*/\\1/p' page)
      get -b jar "${base}entry?store=0&key=616461"
      shown=$(grep -o 'name="shown" value="[0-9a-f]*' page | sed 's/.*"//' || true)
      get -b jar -d "$removal&shown=$shown" "${base}change"
      get -b jar -H "Origin: ${base%/}" -d "$removal&shown=$shown" "${base}change"
      kill $program; wait $program || true; trap - EXIT
      larder count json:users.json
      """
    let run = try await Tool.shell(script, folder.path, isWritable ? "--write" : "", Tool.path)
    let change = isWritable ? "303" : "403"
    #expect(run.output == "401 303 401 200 1\n421 200 403 \(change) \(isWritable ? 0 : 1)\n", "\(run.errors)")
  }

  /// The page copies what can be read, and nothing else can be changed.
  @Test func `a damaged store is salvaged by a page`() async throws {
    let script = """
      set -e; cd "$1"
      for i in 1 2 3 4; do larder set json:users.json $i ${i}00; done
      larder compact json:users.json
      sed 's/"3":/3:/' users.json > damaged.json; cp damaged.json before
      larder queue enqueue queue:jobs 1 > none
      "$2" inspect queue:jobs --salvage-to json:new.json 2>&1 || echo $?
      "$2" inspect json:damaged.json --salvage-to json:rescued.json > address 2> messages & program=$!
      trap 'kill $program' EXIT
      for i in $(seq 600); do grep -q token address && break; sleep 0.1; done
      address=$(cat address); base=${address%%\\?*}
      get() { curl -s -o page -w '%{http_code} ' -b jar -H "Origin: ${base%/}" "$@"; }
      get -c jar "$address"
      get -d 'store=0&action=remove&key=31&confirmed=yes' "${base}change"
      get -d 'store=0&action=salvage' "${base}change"
      larder get json:rescued.json 1 2> none || echo "not yet"
      get -d 'store=0&action=salvage&confirmed=yes' "${base}change"
      get "${base}salvage?store=0"; grep -o '[0-9] entries were copied\\|1 keys or ranges' page
      kill $program; wait $program || true; trap - EXIT
      larder list json:rescued.json; cmp damaged.json before && echo same
      """
    let run = try await Tool.shell(script, folder.path, Tool.path)
    #expect(
      run.output == """
        larder-inspect: queue:jobs is a queue, whose items are not salvaged. Omit --salvage-to.
        64
        303 403 200 not yet
        303 200 3 entries were copied
        1 keys or ranges
        {"key":"1","value":100}
        {"key":"2","value":200}
        {"key":"4","value":400}
        same

        """, "\(run.errors)")
  }
}
