#if Compression && Crypto && LMDB && Metrics && SQLite
import Larder
import LarderCBOR
import LarderCompressedFile
import LarderJSON
import LarderLMDB
import LarderQueue
import LarderSQLite
import LarderTesting
import TestSupport
import Testing

/// Conformance of every kind of store that a URL can open, in two processes, some of which are killed.
@Suite(.limitedParallelism) struct ProcessConformance {
  static let registry = StoreRegistry(providers: [
    JSONFileStoreProvider(), LMDBStoreProvider(), SQLiteStoreProvider(), CompressedFileStoreProvider(),
    QueueStoreProvider(),
  ])

  static let suites: [ConformanceSuite] = registry.providers.flatMap { provider in
    Durability.File.allCases.map { durability in
      let (scheme, isSynced) = (provider.scheme, durability == .synced)
      return ConformanceSuite(
        named: "\(scheme):, \(durability)", child: { await start($0, scheme, isSynced) },
        open: { try await open(scheme, isSynced: isSynced, at: $0) })
    }
  }

  private static func start(_ order: String, _ scheme: String, _ isSynced: Bool) async {
    await #expect(processExitsWith: .failure) { [order, scheme, isSynced] in
      await ConformanceChild.run(order) { try await ProcessConformance.open(scheme, isSynced: isSynced, at: $0) }
    }
  }

  private static func open(
    _ scheme: String, isSynced: Bool, at location: ConformanceLocation
  ) async throws -> AnyDataStore<SampleValue?> {
    let untyped = try await registry.open(
      StoreURL(scheme: scheme, location: location.path("store")),
      options: StoreOptions(durability: isSynced ? .synced : .buffered, access: location.access))
    return
      if untyped.codecName == "cbor"
    { try await untyped.typed(codec: .cbor()) } else { try await untyped.typed(codec: .json()) }
  }

  @Test(arguments: suites.flatMap(\.cases).filter { $0.needs.contains(.otherProcesses) })
  func `conforms across processes`(_ conformanceCase: ConformanceCase) async throws {
    try await conformanceCase.run()
  }
}
#endif
