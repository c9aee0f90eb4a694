#if Compression
import Larder
import Testing

@testable import LarderCompression

@Suite struct CompressedFileIndexTests {
  private func place(_ number: Int) -> EntryPlace { EntryPlace(block: Int64(number), offset: 7, length: 10) }

  @Test func aPlaceKeepsWhatItIsGivenInTwelveBytes() {
    #expect(MemoryLayout<EntryPlace>.stride == 12)
    let place = EntryPlace(block: 1 << 47 + 123, offset: 65_535, length: Int(UInt32.max))
    #expect(place.block == 1 << 47 + 123 && place.textOffset == 65_535 && place.length == .max && !place.isLost)
    #expect(place.moved(by: -123).block == 1 << 47 && place.moved(by: -123).textOffset == 65_535)
    #expect(EntryPlace.lost(in: 5).isLost && EntryPlace.lost(in: 5).block == 5)
  }

  @Test func changesTakeEffectAndAreCounted() {
    var index = CompressedFileIndex()
    for change: Change<EntryPlace> in [
      .set("a", place(1)), .set("b", place(2)), .set("a", place(3)), .set("c", place(4)), .remove("b"), .remove("x"),
    ] { index.apply(change) }
    #expect(index.find("a") == .found(place(3)) && index.find("b") == .missing)
    #expect(index.liveTextSize == 20 && !index.isDamaged && index.firstLost == nil)
    index.apply(.removeAll("b"...))
    #expect(index.liveTextSize == 10 && index.entries.count == 1)
  }

  @Test func whatIsLostIsFoundLostUntilItIsWrittenAnew() {
    var index = CompressedFileIndex()
    index.apply(.set("a", place(1)))
    index.apply(.set("b", .lost(in: 9)))
    #expect(index.find("b") == .lost(block: 9) && index.isDamaged && index.firstLost?.key == "b")
    index.apply(.set("b", place(2)))
    #expect(!index.isDamaged)
    index.apply(.set("b", .lost(in: 9)))
    index.apply(.removeAll(.all))
    #expect(!index.isDamaged && index.find("b") == .missing)
  }

  @Test func aGapCoversKeysThatNobodyKnows() {
    var index = CompressedFileIndex()
    index.apply(.set("a", place(1)))
    index.apply(.set("c", place(1)))
    index.lose("b"..."d", in: 5)
    #expect(
      index.find("a") == .found(place(1)) && index.find("c") == .lost(block: 5) && index.find("bb") == .lost(block: 5))
    #expect(index.find("e") == .missing && index.gap(in: "e"...) == nil && index.gap(in: ..<"c")?.block == 5)
    #expect(index.firstLost?.key == "c")
    index.apply(.set("bb", place(2)))
    index.apply(.remove("bb"))
    #expect(index.find("bb") == .missing, "what was removed since is known not to be there")
    #expect(index.find("bba") == .lost(block: 5))
    index.apply(.removeAll("bb"..<"c"))
    #expect(index.find("bba") == .missing && index.find("c") == .lost(block: 5) && index.find("cc") == .lost(block: 5))
    index.apply(.removeAll(.all))
    #expect(!index.isDamaged)
  }

  @Test(arguments: ScanOrder.allCases) func aPageNamesAGapOnlyWhereItsKeysWouldBelong(_ order: ScanOrder) {
    var index = CompressedFileIndex()
    for key: StoreKey in ["a", "b", "x", "y"] { index.apply(.set(key, place(1))) }
    index.lose("m"..<"n", in: 5)
    #expect(IndexPage(of: index, in: .all, limit: 2, order: order).gap == nil)
    #expect(IndexPage(of: index, in: .all, limit: 3, order: order).gap != nil)
    #expect(IndexPage(of: index, in: "n"..., limit: 10, order: order).gap == nil)
    #expect(IndexPage(of: index, in: .all, limit: 0, order: order).gap == nil)
    #expect(IndexPage(of: index, in: .all, limit: 10, order: order).findings.count == 4)
  }
}
#endif
