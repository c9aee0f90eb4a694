import Larder
import TestSupport
import Testing

@Suite struct StoreRegistryTests {
  /// A provider that opens in-memory stores whose names contain all arguments.
  private struct EchoProvider: StoreProvider {
    let scheme: String
    let summary: String
    let codecName = "json"

    func open(_ url: StoreURL, options: StoreOptions, newCodecName: String?) async throws -> some UntypedStore {
      if url.location == "broken" { throw StoreError(.corrupted, during: .open, message: "broken") }
      return UntypedEcho(
        codecName: newCodecName ?? codecName,
        name: "\(summary) \(url) \(options.createsIfMissing) \(options.durability)")
    }
  }

  private struct UntypedEcho: UntypedStore {
    let codecName: String
    let name: String

    func typed<Value: Sendable>(codec: some Codec<Value>) throws -> AnyDataStore<Value> {
      _ = try CodecRecord(codec).name(replacing: codecName, during: .open, store: name)
      return AnyDataStore(MemoryStore<Value>(name: "\(name) \(codecName)"))
    }
  }

  @Test func `opens by scheme`() async throws {
    let registry = StoreRegistry(providers: [MemoryStoreProvider(), EchoProvider(scheme: "echo", summary: "first")])
    let store = try await registry.open("memory:", codec: .json(Int.self))
    try await store.setValue(1, forKey: "a")
    #expect(try await store["a"] == 1)
    #expect(store.information.name == "memory")
    #expect(store.information.durability == .volatile)
    // Each opening of the scheme `memory` creates a separate store.
    #expect(try await registry.open("memory:", codec: .json(Int.self)).count() == 0)
    #expect(try await registry.open("memory:name", codec: .raw).information.name == "name")
  }

  @Test func `forwards all arguments`() async throws {
    let registry = StoreRegistry(providers: [EchoProvider(scheme: "echo", summary: "first")])
    let store = try await registry.open("echo:a:b", codec: .raw)
    #expect(store.information.name == "first echo:a:b true synced raw")
    let options = StoreOptions(createsIfMissing: false, durability: .buffered)
    let other = try await registry.open(StoreURL(scheme: "echo", location: ""), codec: .jsonText, options: options)
    #expect(other.information.name == "first echo: false buffered json")
    await expectStoreError(.corrupted) { try await registry.open("echo:broken", codec: .raw) }
  }

  @Test func `the type is chosen after opening`() async throws {
    let registry = StoreRegistry(providers: [EchoProvider(scheme: "echo", summary: "first"), MemoryStoreProvider()])
    let untyped = try await registry.open(StoreURL("echo:a"))
    #expect(untyped.codecName == "json")
    #expect(try await untyped.typed(codec: .jsonText).information.name == "first echo:a true synced json")
    let error = await expectStoreError(.versionMismatch) { try await untyped.typed(codec: .raw) }
    #expect(error?.message.contains("with the codec json, not with raw") == true)
    #expect(try await registry.open(StoreURL("echo:a"), newCodecName: "raw").codecName == "raw")
    #expect(try await registry.open(StoreURL("memory:"), newCodecName: "raw").codecName == "raw")
  }

  @Test func `the later registration counts`() async throws {
    var registry = StoreRegistry(providers: [
      EchoProvider(scheme: "b", summary: "first"), EchoProvider(scheme: "b", summary: "second"),
    ])
    #expect(try await registry.open("b:", codec: .raw).information.name.hasPrefix("second"))
    registry.register(EchoProvider(scheme: "b", summary: "third"))
    registry.register(EchoProvider(scheme: "a", summary: "other"))
    #expect(registry.providers.map(\.scheme) == ["a", "b"])
    #expect(registry.providers.map(\.summary) == ["other", "third"])
  }

  @Test func `an unknown scheme is refused`() async throws {
    let registry = StoreRegistry(providers: [MemoryStoreProvider()])
    let error = await expectStoreError(.unsupported) { try await registry.open("lmdb:x", codec: .raw) }
    #expect(error?.message.contains("memory:") == true)
    await expectStoreError(.unsupported) { try await StoreRegistry().open("memory:", codec: .raw) }
    await expectStoreError(.invalidArgument) { try await registry.open("memory", codec: .raw) }
  }

  @Test func `memory never exists already`() async throws {
    let registry = StoreRegistry(providers: [MemoryStoreProvider()])
    await expectStoreError(.notFound) {
      try await registry.open("memory:", codec: .raw, options: StoreOptions(createsIfMissing: false))
    }
    for access in [StoreAccess.readOnly, .immutable] {
      let error = await expectStoreError(.notFound) {
        try await registry.open("memory:", codec: .raw, options: StoreOptions(access: access))
      }
      #expect(error?.message.contains("access readWrite") == true)
    }
  }
}
