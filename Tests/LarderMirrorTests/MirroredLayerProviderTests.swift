import Larder
import LarderMirror
import TestSupport
import Testing

/// The layer of configured stacks, whose other tests are those of LarderConfiguration.
@Suite struct MirroredLayerProviderTests {
  /// A store in memory that claims to keep its values in some form.
  private struct ClaimingStore<Value: Sendable>: PassingStore {
    let base: MemoryStore<Value>
    let form: StoreInformation.ValuesAtRest

    var information: StoreInformation {
      var information = base.information
      information.valuesAtRest = form
      return information
    }
  }

  private struct OpenableMemory: OpenableStore {
    let form: StoreInformation.ValuesAtRest

    func open<Value: Sendable>(codec: some Codec<Value>) async throws -> AnyDataStore<Value> {
      AnyDataStore(ClaimingStore(base: MemoryStore<Value>(), form: form))
    }
  }

  @Test func `a plain secondary of an encrypted stack needs the setting`() async throws {
    func open(_ values: [String: LayerSettings.Value]) async throws -> AnyDataStore<[UInt8]> {
      let settings = LayerSettings(
        stack: "users", layerKey: "stores.users.mirrored", values: values,
        stores: ["secondary": OpenableMemory(form: .plain)])
      return try await MirroredLayerProvider { _, _ in }
        .open(codec: .raw, over: OpenableMemory(form: .encrypted), settings: settings)
    }
    await expectStoreError(.unsupported) { try await open([:]) }
    await expectStoreError(.unsupported) { try await open(["plain": .flag(false)]) }
    let mirror = try await open(["plain": .flag(true)])
    #expect(mirror.information.valuesAtRest == .encrypted)
    try await mirror.close()
  }
}
