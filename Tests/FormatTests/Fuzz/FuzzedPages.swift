#if LMDB
import Foundation
import Larder
import LarderLMDB
import LarderTesting

/// A data file of LMDB with bytes that a fuzzer has changed, which is read as `larder verify` and `larder salvage` do.
///
/// Such a file has pages that refer to each other, so an input is a list of changes to one with three kinds of pages: three bytes
/// for each, of which two choose the place, and one is the new byte.
enum FuzzedPages {
  /// The errors of a damaged file, or of a store in it that is damaged or missing.
  private static let refusals: Set<StoreError.Code> = [
    .corrupted, .unrecognizedFormat, .versionMismatch, .undecodable, .invalidArgument, .conflict, .invalidKey,
    .notFound,
    .unsupported,
  ]

  /// The number of entries of each of the two stores, of which some need pages of their own.
  private static let count = 60

  /// A data file, as LMDB writes it.
  private static let image = Task {
    let folder = try TemporaryFolder()
    defer { folder.remove() }
    let environment = try await LMDBEnvironment(path: folder.path, durability: .buffered)
    for name in ["default", "second"] {
      let store = try await LMDBStore<[UInt8]>(in: environment, name: name, codec: .raw)
      try await store.apply(
        ChangeBatch(
          (0..<count).map { number in
            .set(
              StoreKey("key \(number)"), Array(repeating: UInt8(number), count: number % 20 == 0 ? 5_000 : number * 4))
          }))
      try await store.removeValue(forKey: "key 7")
    }
    try await environment.close()
    return [UInt8](try Data(contentsOf: URL(filePath: folder.path + "/data.mdb")))
  }

  static func read(_ bytes: [UInt8]) async throws {
    var content = try await image.value
    for start in stride(from: 0, to: bytes.count - bytes.count % 3, by: 3) {
      content[(Int(bytes[start]) | Int(bytes[start + 1]) << 8) % content.count] = bytes[start + 2]
    }
    let folder = try TemporaryFolder()
    defer { folder.remove() }
    let path = folder.path + "/data.mdb"
    try Data(content).write(to: URL(filePath: path))
    for findsPossiblyOlder in [false, true] {
      let provider = LMDBStoreProvider(examinesPages: true, findsPossiblyOlder: findsPossiblyOlder)
      let registry = StoreRegistry(providers: [provider])
      do {
        let store = try await registry.open("lmdb:\(folder.path)#second", codec: .raw)
        do {
          try await examine(store)
        } catch {
          try await store.close()
          throw error
        }
        try await store.close()
      } catch let error as StoreError where refusals.contains(error.code) {}
    }
    let after = [UInt8](try Data(contentsOf: URL(filePath: path)))
    try FuzzTarget.expect(after == content, "reading changes the file")
  }

  private static func examine(_ store: AnyDataStore<[UInt8]>) async throws {
    var last: StoreKey?
    for try await part in store.salvage(batchSize: 7) {
      guard case .entries(let entries) = part else { continue }
      for entry in entries {
        try FuzzTarget.expect(
          last.map { $0 < entry.key } ?? true, "\(entry.key) follows \(last.map { "\($0)" } ?? "nothing")")
        last = entry.key
      }
    }
    _ = try await store.maintenance?.verify()
  }
}

/// A folder that its user removes.
private struct TemporaryFolder {
  let path: String

  init() throws {
    path = FileManager.default.temporaryDirectory.appending(path: "larder-fuzz-\(UUID().uuidString)").path
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
  }

  func remove() { try? FileManager.default.removeItem(atPath: path) }
}
#endif
