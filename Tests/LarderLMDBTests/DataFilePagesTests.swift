import LarderTesting
import Testing

@testable import LarderLMDB

@Suite struct DataFilePagesTests {
  private func pages(of bytes: [UInt8]) throws -> DataFilePages {
    DataFilePages(header: try DataFileHeader(bytes), fileSize: Int64(bytes.count)) { offset, count in
      Array(bytes[min(Int(offset), bytes.count)..<min(Int(offset) + count, bytes.count)])
    }
  }

  @Test func aWholeFileMissesNothing() async throws {
    let image = try await DataFileImage.filled()
    let pages = try pages(of: image.bytes)
    #expect(pages.isComplete)
    #expect(try pages.firstMissingPage() == nil)
  }

  @Test func aPageThatIsCutOffIsNamed() async throws {
    let image = try await DataFileImage.filled()
    let count = image.bytes.count / DataFileImage.pageSize
    var found = 0
    for remaining in 2..<count {
      let pages = try pages(of: Array(image.bytes.prefix(remaining * DataFileImage.pageSize + 17)))
      #expect(!pages.isComplete)
      guard let missing = try pages.firstMissingPage() else { continue }
      found += 1
      // A value that has pages of its own may begin before the end.
      #expect(missing + 3 >= UInt64(remaining) && missing < UInt64(count))
    }
    #expect(found > count / 2)
  }

  @Test func aCircleOfPagesIsDamage() async throws {
    var image = try await DataFileImage.filled()
    let header = try DataFileHeader(image.bytes)
    let newer = [0, DataFileImage.secondMeta].first { image.integer(at: $0 + 144) == header.transaction } ?? 0
    // The tree of free pages begins where that of the databases does.
    image.set(header.roots[1], at: newer + 80)
    #expect(try pages(of: image.bytes).firstMissingPage() == header.roots[1])
  }

  @Test func anyDamageIsFoundOrPassed() async throws {
    var random = SeededGenerator(test: #function)
    let image = try await DataFileImage.filled()
    for _ in 0..<400 {
      var damaged = image.bytes
      for _ in 0..<Int.random(in: 1...60, using: &random) {
        // Headers of pages and the places of their nodes matter most.
        let page = Int.random(in: 0..<damaged.count / DataFileImage.pageSize, using: &random)
        let place =
          page * DataFileImage.pageSize + Int.random(in: 0..<(Bool.random(using: &random) ? 160 : 4096), using: &random)
        damaged[place] =
          [0x00, 0x01, 0x02, 0x7F, 0xFF, UInt8(truncatingIfNeeded: random.next())][
            Int.random(in: 0..<6, using: &random)]
      }
      damaged.removeLast(Int.random(in: 0...damaged.count / 2, using: &random))
      do {
        _ = try pages(of: damaged).firstMissingPage()
      } catch is DataFileHeader.Refusal {
        continue
      }
    }
  }
}
