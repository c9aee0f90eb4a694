#if LMDB
import Foundation
import Larder
import TestSupport

@testable import LarderLMDB

/// The bytes of an LMDB data file, which tests can damage.
struct DataFileImage {
  var bytes: [UInt8]

  static let pageSize = 4096
  /// The offset of the second meta page.
  static let secondMeta = pageSize

  /// Returns the offset of a field of the first meta page, whose header has not the same size in all formats.
  static func field(_ offset: Int) -> Int { DataFileFormat.linked.pageHeaderSize + offset }

  /// Creates the data file of an environment with two stores, several levels deep, with values on overflow pages.
  static func filled() async throws -> DataFileImage {
    let folder = try TemporaryFolder()
    let environment = try await LMDBEnvironment(path: folder.path("environment"), durability: .buffered)
    for name in ["default", "other"] {
      let store = try await LMDBStore<[UInt8]>(in: environment, name: name, codec: .raw)
      try await store.apply(ChangeBatch(entries.map { .set($0.key, $0.value) }))
    }
    try await environment.close()
    return DataFileImage(bytes: try Array(Data(contentsOf: URL(filePath: folder.path("environment/data.mdb")))))
  }

  /// The entries of each store, in order.
  static let entries: [StoreEntry<[UInt8]>] = (0..<120).map { number in
    StoreEntry(
      key: StoreKey("key \(1000 + number)"),
      value: [UInt8](repeating: UInt8(number), count: number.isMultiple(of: 40) ? 9000 : 150))
  }

  /// Writes an integer in native byte order.
  mutating func set<Integer: FixedWidthInteger>(_ value: Integer, at offset: Int) {
    withUnsafeBytes(of: value) { bytes.replaceSubrange(offset..<offset + $0.count, with: $0) }
  }

  /// Writes an integer to both meta pages.
  mutating func setInBothMetas<Integer: FixedWidthInteger>(_ value: Integer, at offset: Int) {
    set(value, at: offset)
    set(value, at: offset + DataFileImage.secondMeta)
  }

  /// Reads an integer.
  func integer<Integer: FixedWidthInteger & BitwiseCopyable>(at offset: Int) -> Integer {
    bytes.withUnsafeBytes { $0.loadUnaligned(fromByteOffset: offset, as: Integer.self) }
  }

  func write(to path: String) throws {
    try Data(bytes).write(to: URL(filePath: path))
  }
}
#endif
