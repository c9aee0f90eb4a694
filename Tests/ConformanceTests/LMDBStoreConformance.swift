#if Compression && Crypto && LMDB && Metrics && SQLite
import Foundation
import Larder
import LarderTesting
import TestSupport
import Testing

@testable import LarderLMDB

/// A store that closes its environment when it is closed.
private struct EnvironmentOwner<Value: Sendable>: PassingStore {
  let base: LMDBStore<Value>
  let environment: LMDBEnvironment

  func close() async throws {
    do {
      try await base.close()
    } catch {
      try await environment.close()
      throw error
    }
    try await environment.close()
  }
}

@Suite(.limitedParallelism) struct LMDBStoreConformance {
  static let synced = ConformanceSuite(named: "LMDBStore, synced") { location in
    try await LMDBStore<SampleValue?>(path: location.path("environment"), access: location.access)
  }

  static let buffered = ConformanceSuite(named: "LMDBStore, buffered", codec: .json()) { location, codec in
    try await LMDBStore<SampleValue?>(
      path: location.path("environment"), codec: codec, durability: .buffered, access: location.access)
  }

  static let neighbours = ConformanceSuite(named: "LMDBStore beside others in an environment") { location in
    let environment = try await LMDBEnvironment(path: location.path("environment"), access: location.access)
    for name in ["a", "z"] where location.access == .readWrite {
      let store = try await LMDBStore<[UInt8]>(in: environment, name: name, codec: .raw)
      try await store.setValue([1, 2, 3], forKey: "neighbour")
    }
    return EnvironmentOwner(
      base: try await LMDBStore<SampleValue?>(in: environment, name: "m", codec: .json()), environment: environment)
  }

  static let growing = ConformanceSuite(named: "LMDBStore in a memory map that grows") { location in
    let environment = try await LMDBEnvironment(
      EnvironmentConfiguration(path: location.path("environment"), access: location.access, initialMapSize: 1 << 17))
    return EnvironmentOwner(
      base: try await LMDBStore<SampleValue?>(in: environment, codec: .json()), environment: environment)
  }

  static let singleFile = ConformanceSuite(named: "LMDBStore in a single file, behind AnyDataStore") { location in
    let path = location.path("environment.mdb")
    // An empty file becomes a data file. A missing path becomes a folder.
    if location.access == .readWrite, !FileManager.default.fileExists(atPath: path) {
      try Data().write(to: URL(filePath: path))
    }
    return AnyDataStore(try await LMDBStore<SampleValue?>(path: path, durability: .buffered, access: location.access))
  }

  @Test(arguments: synced.casesOfCombinations) func `conforms synced`(_ conformanceCase: ConformanceCase) async throws {
    try await conformanceCase.run()
  }

  @Test(arguments: buffered.cases) func `conforms buffered`(_ conformanceCase: ConformanceCase) async throws {
    try await conformanceCase.run()
  }

  @Test(arguments: neighbours.casesOfCombinations) func `conforms beside others`(_ conformanceCase: ConformanceCase)
    async throws
  {
    try await conformanceCase.run()
  }

  @Test(arguments: growing.casesOfCombinations) func `conforms while growing`(_ conformanceCase: ConformanceCase)
    async throws
  {
    try await conformanceCase.run()
  }

  @Test(arguments: singleFile.casesOfCombinations) func `conforms in a single file`(_ conformanceCase: ConformanceCase)
    async throws
  {
    try await conformanceCase.run()
  }
}

extension EnvironmentOwner: MaintainableStore {}

extension EnvironmentOwner: ObservableStore {
  func weakReference() -> @Sendable () -> Self? {
    let base = base.weakReference()
    return { [weak environment = environment] in
      guard let base = base(), let environment else { return nil }
      return EnvironmentOwner(base: base, environment: environment)
    }
  }
}
#endif
