#if Compression
import Larder
import Testing

@testable import LarderCompressedFile

@Suite struct CompressedFileIndexTests {
  private func location(_ number: Int) -> EntryLocation { EntryLocation(block: Int64(number), offset: 7, length: 10) }

  @Test func `a place round trips in twelve bytes`() {
    #expect(MemoryLayout<EntryLocation>.stride == 12)
    let location = EntryLocation(block: 1 << 47 + 123, offset: 65_535, length: Int(UInt32.max))
    #expect(
      location.block == 1 << 47 + 123 && location.textOffset == 65_535 && location.length == .max && !location.isLost)
    #expect(EntryLocation.lost(in: 5).isLost && EntryLocation.lost(in: 5).block == 5)
  }

  @Test func `changes take effect and are counted`() {
    var index = CompressedFileIndex()
    for change: BatchChange<EntryLocation> in [
      .set("a", location(1)), .set("b", location(2)), .set("a", location(3)), .set("c", location(4)), .remove("b"),
      .remove("x"),
    ] { index.apply(change) }
    #expect(index.find("a") == .found(location(3)) && index.find("b") == .missing)
    #expect(index.liveTextSize == 20 && !index.isDamaged && index.firstLost == nil)
    index.apply(.removeAll("b"...))
    #expect(index.liveTextSize == 10 && index.entries.count == 1)
  }

  @Test func `a lost key is reported until it is rewritten`() {
    var index = CompressedFileIndex()
    index.apply(.set("a", location(1)))
    index.apply(.set("b", .lost(in: 9)))
    #expect(index.find("b") == .lost(block: 9) && index.isDamaged && index.firstLost?.key == "b")
    index.apply(.set("b", location(2)))
    #expect(!index.isDamaged)
    index.apply(.set("b", .lost(in: 9)))
    index.apply(.removeAll(.all))
    #expect(!index.isDamaged && index.find("b") == .missing)
  }

  @Test func `a gap covers unknown keys`() {
    var index = CompressedFileIndex()
    index.apply(.set("a", location(1)))
    index.apply(.set("c", location(1)))
    index.lose("b"..."d", in: 5)
    #expect(
      index.find("a") == .found(location(1)) && index.find("c") == .lost(block: 5)
        && index.find("bb") == .lost(block: 5))
    #expect(index.find("e") == .missing && index.gap(in: "e"...) == nil && index.gap(in: ..<"c")?.block == 5)
    #expect(index.firstLost?.key == "c")
    index.apply(.set("bb", location(2)))
    index.apply(.remove("bb"))
    #expect(index.find("bb") == .missing, "a key removed after the loss is known to be missing")
    #expect(index.find("bba") == .lost(block: 5))
    index.apply(.removeAll("bb"..<"c"))
    #expect(index.find("bba") == .missing && index.find("c") == .lost(block: 5) && index.find("cc") == .lost(block: 5))
    index.apply(.removeAll(.all))
    #expect(!index.isDamaged)
  }

  @Test(arguments: ScanOrder.allCases) func `a page reports a gap only if it could contain its keys`(_ order: ScanOrder)
  {
    var index = CompressedFileIndex()
    for key: StoreKey in ["a", "b", "x", "y"] { index.apply(.set(key, location(1))) }
    index.lose("m"..<"n", in: 5)
    #expect(IndexPage(of: index, in: .all, limit: 2, order: order).gap == nil)
    #expect(IndexPage(of: index, in: .all, limit: 3, order: order).gap != nil)
    #expect(IndexPage(of: index, in: "n"..., limit: 10, order: order).gap == nil)
    #expect(IndexPage(of: index, in: .all, limit: 0, order: order).gap == nil)
    #expect(IndexPage(of: index, in: .all, limit: 10, order: order).findings.count == 4)
  }

  @Test func `if the lost keys are unknown all earlier entries are lost`() {
    var index = CompressedFileIndex()
    for key: StoreKey in ["a", "b", "c"] { index.apply(.set(key, location(1))) }
    index.loseAll(before: 5)
    #expect(index.find("a") == .lost(block: 5) && index.find("x") == .lost(block: 5) && index.lostCount == 3)
    #expect(index.entries.count == 3 && index.firstLost?.key == "a")
    index.apply(.set("b", location(7)))
    index.apply(.remove("c"))
    #expect(index.find("b") == .found(location(7)) && index.find("c") == .missing && index.lostCount == 1)
    #expect(index.gap(in: .all)?.range == ""..<"b" && index.gap(in: "b"..<"c")?.range != nil)
    #expect(index.gap(in: .only("b")) == nil && index.gap(in: .all, order: .descending)?.range.upperBound == nil)
    index.loseAll(before: 9)
    #expect(index.find("b") == .lost(block: 9) && index.lostCount == 2 && index.allGaps.map(\.range) == [.all])
    index.apply(.removeAll(.all))
    #expect(!index.isDamaged && index.find("a") == .missing)
  }

  @Test func `possibly older entries are found on request`() {
    var index = CompressedFileIndex()
    for key: StoreKey in ["a", "b", "c"] { index.apply(.set(key, location(1))) }
    index.apply(.set("d", .lost(in: 2)))
    index.loseAll(before: 5)
    index.apply(.set("b", location(7)))
    #expect(index.possiblyOlderCount == 2 && index.lostCount == 3)
    index.findPossiblyOlder()
    #expect(index.find("a") == .found(location(1)) && index.find("b") == .found(location(7)))
    #expect(index.find("d") == .lost(block: 2) && index.find("x") == .missing && index.lostCount == 1)
    #expect(index.gap(in: .all) == nil && index.possiblyOlderCount == 0)
  }

  @Test func `many gaps take no longer than one`() {
    var index = CompressedFileIndex()
    index.loseAll(before: 5)
    // Visiting every gap for every key would take minutes.
    for number in 0..<60_000 { index.apply(.set(StoreKey(integer: number), location(7))) }
    #expect(index.allGaps.count == 60_001 && index.lostCount == 0)
  }
}
#endif
