#if Configuration
import Foundation
import Larder
import LarderCache
import LarderConfiguration
import TestSupport
import Testing

/// The names and values that sources have.
@Suite struct ConfigurationSourceTests {
  private let folder: TemporaryFolder

  init() throws {
    folder = try TemporaryFolder()
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
