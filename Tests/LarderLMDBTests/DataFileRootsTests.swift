#if LMDB
import Larder
import LarderTesting
import Testing

@testable import LarderLMDB

@Suite struct DataFileRootsTests {
  private func roots(of bytes: [UInt8]) throws -> DataFileRoots {
    DataFileRoots(header: try DataFileHeader(bytes, store: "store"), fileSize: Int64(bytes.count)) { offset, count in
      Array(bytes[min(Int(offset), bytes.count)..<min(Int(offset) + count, bytes.count)])
    }
  }

  @Test func `a whole file is complete`() async throws {
    #expect(try roots(of: try await DataFileImage.filled().bytes).firstMissing() == nil)
  }

  @Test func `a truncated root is named`() async throws {
    let image = try await DataFileImage.filled()
    let header = try DataFileHeader(image.bytes, store: "store")
    for root in header.roots {
      let bytes = Array(image.bytes.prefix(Int(root) * DataFileImage.pageSize + 17))
      #expect(try #require(try roots(of: bytes).firstMissing()) >= root)
    }
  }

  /// The meta pages do not list the roots of named databases.
  @Test func `a truncated root of a named database is named`() async throws {
    var image = try await DataFileImage.filled()
    let header = try DataFileHeader(image.bytes, store: "store")
    // Moves the last used page beyond the end of the file, so that the roots are examined.
    image.setInBothMetas(UInt64(image.bytes.count / DataFileImage.pageSize) + 5, at: DataFileImage.field(120))
    #expect(try roots(of: image.bytes).firstMissing() == nil)
    let main = Int(header.roots[1]) * DataFileImage.pageSize
    let offset: UInt16 = image.integer(at: main + header.format.pageHeaderSize)
    let place = main + Int(offset) + header.format.nodeBase
    let keySize: UInt16 = image.integer(at: place + 6)
    let root = place + 8 + header.format.data(afterKeyOf: Int(keySize)) + 40
    image.set(UInt64(image.bytes.count / DataFileImage.pageSize) + 1, at: root)
    #expect(try roots(of: image.bytes).firstMissing() == UInt64(image.bytes.count / DataFileImage.pageSize) + 1)
  }

  @Test func `another page in place of a root is damage`() async throws {
    var image = try await DataFileImage.filled()
    let header = try DataFileHeader(image.bytes, store: "store")
    image.setInBothMetas(UInt64(image.bytes.count / DataFileImage.pageSize) + 5, at: DataFileImage.field(120))
    image.set(header.roots[1] + 1, at: Int(header.roots[1]) * DataFileImage.pageSize)
    #expect(try roots(of: image.bytes).firstMissing() == header.roots[1])
  }

  @Test func `any damage is handled safely`() async throws {
    var random = SeededGenerator(test: #function)
    let image = try await DataFileImage.filled()
    for _ in 0..<400 {
      var damaged = image.bytes
      for _ in 0..<Int.random(in: 1...60, using: &random) {
        // Damage to page headers and node offsets matters most.
        let page = Int.random(in: 0..<damaged.count / DataFileImage.pageSize, using: &random)
        let place =
          page * DataFileImage.pageSize + Int.random(in: 0..<(Bool.random(using: &random) ? 160 : 4096), using: &random)
        damaged[place] =
          [0x00, 0x01, 0x02, 0x7F, 0xFF, UInt8(truncatingIfNeeded: random.next())][
            Int.random(in: 0..<6, using: &random)]
      }
      damaged.removeLast(Int.random(in: 0...damaged.count / 2, using: &random))
      do {
        _ = try roots(of: damaged).firstMissing()
      } catch is StoreError {
        continue
      }
    }
  }
}
#endif
