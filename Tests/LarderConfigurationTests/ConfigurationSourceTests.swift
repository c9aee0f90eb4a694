#if Configuration && SQLite
import Foundation
import Larder
import LarderCache
import LarderConfiguration
import LarderMirror
import LarderSQLite
import TestSupport
import Testing

/// The names and values that sources have, and the stores that they do not permit to create.
@Suite struct ConfigurationSourceTests {
  private let folder: TemporaryFolder

  init() throws {
    folder = try TemporaryFolder()
  }

  @Test func `an unknown stack is named`() async throws {
    let document = #"{"sesions": {"url": "json:FOLDER/s"}, "mails": {"url": "memory:"}}"#
    func stacks(_ source: ConfigurationSource, _ names: [String]?) -> Stacks {
      Stacks(
        sources: [source, .environment(["STORES_SESSIONS_URL": "memory:"])], stores: [MemoryStoreProvider()],
        layers: [TieredLayerProvider(), MirroredLayerProvider { _, _ in }], names: names)
    }
    let json = try ConfigurationSource.json(Data("{\"stores\": \(document)}".utf8), name: "app.json")
    try await stacks(json, nil).open("sessions", codec: .json(Int.self)).close()
    let error = await expectStoreError(.invalidArgument) {
      try await stacks(json, ["sessions", "mails"]).open("mails", codec: .json(Int.self))
    }
    #expect(
      error?.message == "stores.sesions.url in app.json is of no stack of the program, which has: mails, sessions")
    for (source, name) in [
      (ConfigurationSource.environment(["STORES_SESSION_URL": "memory:"]), "STORES_SESSION_URL"),
      (.arguments(["program", "--stores-sessionss-url=memory:"]), "--stores-sessionss-url"),
    ] {
      let error = await expectStoreError(.invalidArgument) {
        try await stacks(source, ["sessions"]).open("sessions", codec: .json(Int.self))
      }
      #expect(error?.message.hasPrefix("\(name) in") == true, "\(error?.message ?? "")")
    }
    let used = try ConfigurationSource.json(
      Data(
        #"""
        {"stores": {"sessions": {"mirrored": {"secondary": "a"}}, "a": {"url": "memory:a", "tiered": {"cache": "b", "ttl": "1h"}},
        "b": {"url": "memory:b"}}, "other": {"c": 1}}
        """#.utf8), name: "app.json")
    try await stacks(used, ["sessions"]).open("sessions", codec: .json(Int.self)).close()
    let missing = await expectStoreError(.invalidArgument) {
      try await stacks(used, ["sessions"]).open("a", codec: .json(Int.self))
    }
    #expect(missing?.message == "stores.a is no stack of the program, which has: sessions")
  }

  @Test(arguments: [
    ("memory:", #""access": "readOnly""#, "stores.s.access does not permit creating it"),
    ("memory:", #""access": "immutable""#, "stores.s.access does not permit creating it"),
    ("memory:", #""create": false"#, "stores.s.create does not permit creating it"),
    ("sqlite:FOLDER/missing", #""access": "readOnly""#, "stores.s.access does not permit creating it"),
  ]) func `a store that is missing names the key`(_ url: String, _ setting: String, _ text: String) async throws {
    let document = #"{"stores": {"s": {"url": "\#(url)", \#(setting)}}}"#.replacing("FOLDER", with: folder.path(""))
    let stacks = Stacks(
      sources: [try .json(Data(document.utf8), name: "app.json")],
      stores: [MemoryStoreProvider(), SQLiteStoreProvider()])
    let error = await expectStoreError(.notFound) { try await stacks.open("s", codec: .json(Int.self)) }
    #expect(error?.message.hasSuffix(text) == true, "\(error?.message ?? "")")
  }

  /// The provider of arguments takes a comma as the end of one of several values.
  @Test(arguments: [["--stores-s-url", "memory:a,b"], ["--stores-s-url=memory:a,b"]])
  func `an argument can have commas`(_ arguments: [String]) throws {
    let stacks = Stacks(sources: [.arguments(["program"] + arguments)], stores: [MemoryStoreProvider()])
    #expect(try stacks.url(of: "s").location == "a,b")
  }

  @Test(arguments: [
    ["--stores-s-url", "memory:a", "memory:b"], ["--stores-s-url", "memory:a", "--stores-s-url=memory:b"],
    ["--stores-s-url", "memory:a,b", "memory:c"],
  ]) func `an argument has one value`(_ arguments: [String]) throws {
    let stacks = Stacks(sources: [.arguments(["program"] + arguments)], stores: [MemoryStoreProvider()])
    let error = #expect(throws: StoreError.self) { try stacks.url(of: "s") }
    #expect(error?.message.contains("stores.s.url") == true)
  }

  #if ConfigurationYAML
  /// YAML and JSON have the same names, also of what is null, empty or merged.
  @Test(arguments: [
    ("s: {url: \"memory:\", cached: {}}", "stores.s.cached.{}"),
    ("s: {url: \"memory:\", cached: null}", "stores.s.cached in"), ("s: null", "stores.s in"),
    ("s: {url: \"memory:\", cached: {entries: true}}", "stores.s.cached.entries in"),
    ("s: &all {url: \"memory:\", cached: &some {entrys: 1}}", "stores.s.cached.entrys in"),
    ("s: {url: \"memory:\", cached: {entries: 5, <<: {ttl: 1m}}}", "stores.s.cached"),
    ("s: {url: \"memory:\", 1: 2}", "stores.s.1 in"),
  ]) func `mistakes in YAML are named`(_ text: String, _ name: String) throws {
    try "stores:\n  \(text)\n".write(toFile: folder.path("app.yaml"), atomically: true, encoding: .utf8)
    let stacks = Stacks(
      sources: [try .yaml(path: folder.path("app.yaml"))], stores: [MemoryStoreProvider()],
      layers: [CachedLayerProvider()])
    let error = #expect(throws: StoreError.self) { try stacks.describe("s") }
    #expect(error?.message.hasPrefix(name) == true, "\(error?.message ?? "")")
  }
  #endif
}
#endif
