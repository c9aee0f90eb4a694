import LarderTesting

/// A kind of store that keeps files, for tests that run with each kind.
enum StoreKind: String, CaseIterable {
  case json
  case compressed
  case lmdb
  case sqlite

  /// Returns the name of a store's file or folder.
  ///
  /// - Parameter name: The beginning of the name. Defaults to `store`.
  func fileName(_ name: String = "store") -> String { "\(name).\(rawValue)" }

  /// The texts that follow the path of a store in the paths of the files beside it.
  var companionSuffixes: [String] {
    switch self {
    case .json: [".journal", ".lock"]
    case .compressed: [".lock"]
    case .lmdb: []
    case .sqlite: ["-wal", "-shm", "-journal"]
    }
  }

  /// Returns the file of a store that grows with each write.
  func growingFile(_ name: String) -> String {
    switch self {
    case .json: "\(fileName(name)).journal"
    case .compressed: fileName(name)
    case .lmdb: "\(fileName(name))/data.mdb"
    case .sqlite: "\(fileName(name))-wal"
    }
  }

  /// Returns the URL of a store in a folder.
  ///
  /// - Parameters:
  ///   - name: The beginning of the name of its file or folder. Defaults to `store`.
  ///   - folder: The folder.
  func url(_ name: String = "store", in folder: TemporaryFolder) -> String {
    "\(rawValue):\(folder.file(fileName(name)))"
  }

  /// Returns the pairs of kinds for a test of two stores.
  ///
  /// With the few rounds of `make test`, each kind is in one pair as the first and in one as the second, which the seed
  /// chooses. Otherwise, these are all pairs.
  ///
  /// - Parameter test: The name of the test, so the tests of a process have different pairs.
  static func pairs(for test: String) -> [(StoreKind, StoreKind)] {
    var generator = SeededGenerator(seed: SeededGenerator.seedOfProcess, purpose: test)
    let isShort = ConformanceSuite.roundsOfProcess < 20
    return allCases.shuffled(using: &generator).enumerated().flatMap { index, second in
      isShort ? [(allCases[index], second)] : allCases.map { ($0, second) }
    }
  }
}
