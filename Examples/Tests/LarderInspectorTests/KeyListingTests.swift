import Larder
import LarderTesting
import Testing

@testable import LarderInspector

@Suite("Listing of keys")
struct KeyListingTests {
  private func listing(
    _ store: MemoryStore<[UInt8]>, prefix: StoreKey = "", at place: KeyListing.Place? = nil, folds: Bool = true
  ) async throws -> KeyListing {
    try await KeyListing(prefix: prefix, at: place ?? .from(prefix), folds: folds) {
      try store.keys(in: $0, limit: $1, order: $2)
    }
  }

  private func filled(_ keys: some Sequence<StoreKey>) throws -> MemoryStore<[UInt8]> {
    let store = MemoryStore<[UInt8]>()
    var batch = ChangeBatch<[UInt8]>()
    for key in keys { batch.setValue([], forKey: key) }
    try store.apply(batch)
    return store
  }

  @Test func `deeper keys are folded`() async throws {
    let store = try filled(["a", "a/1", "a/2", "a/b/3", "b:1", "b:2", "c", "d/", "é/x"])
    let top = try await listing(store)
    #expect(top.nodes == [.key("a"), .folder("a/"), .folder("b:"), .key("c"), .folder("d/"), .folder("é/")])
    #expect(top.next == nil)
    #expect(top.previous == nil)
    #expect(try await listing(store, prefix: "a/").nodes == [.key("a/1"), .key("a/2"), .folder("a/b/")])
    #expect(try await listing(store, prefix: "a/", folds: false).nodes == [.key("a/1"), .key("a/2"), .key("a/b/3")])
    #expect(try await listing(store, prefix: "x").nodes.isEmpty)
  }

  @Test("Pages forward and back hold every key once", arguments: [true, false]) func pages(folds: Bool) async throws {
    var generator = SeededGenerator(seed: 61)
    for round in 0..<30 {
      let count = Int.random(in: 0...450, using: &generator)
      let keys = Set(
        (0..<count).map { _ in
          StoreKey(
            bytes: (0..<Int.random(in: 1...4, using: &generator)).map { _ in
              [0x00, 0x2F, 0x3A, 0x61, 0x62, 0xFF].randomElement(using: &generator)!
            })
        })
      let numbered = (0..<count).map { StoreKey("n\($0)") }
      let store = try filled(Array(keys) + numbered)
      for prefix in ["", "n", "a"] as [StoreKey] {
        let expected = Self.nodes(
          of: try store.keys(in: .prefix(prefix), limit: .max, order: .ascending), below: prefix, folds: folds)
        var (forward, place) = ([] as [KeyListing.Node], KeyListing.Place?.some(.from(prefix)))
        var last: KeyListing?
        while let here = place {
          let page = try await listing(store, prefix: prefix, at: here, folds: folds)
          #expect(page.nodes.count <= KeyListing.length)
          #expect((page.previous == nil) == forward.isEmpty, "round \(round)")
          forward += page.nodes
          (place, last) = (page.next, page)
        }
        #expect(forward == expected, "round \(round)")
        var backward = last?.nodes ?? []
        place = last?.previous
        while let here = place {
          let page = try await listing(store, prefix: prefix, at: here, folds: folds)
          let next = try await listing(store, prefix: prefix, at: page.next, folds: folds)
          #expect(next.nodes.first == backward.first, "round \(round)")
          backward = page.nodes + backward
          place = page.previous
        }
        #expect(backward == expected, "round \(round)")
      }
    }
  }

  /// The lines of all keys, found the slow way.
  private static func nodes(of keys: [StoreKey], below prefix: StoreKey, folds: Bool) -> [KeyListing.Node] {
    var nodes: [KeyListing.Node] = []
    for key in keys {
      let end = key.bytes.dropFirst(prefix.count).firstIndex { $0 == 0x2F || $0 == 0x3A }
      let node = folds ? end.map { KeyListing.Node.folder(StoreKey(bytes: key.bytes[...$0])) } ?? .key(key) : .key(key)
      if nodes.last != node { nodes.append(node) }
    }
    return nodes
  }

  @Test func `a folder costs one read`() async throws {
    let store = try filled((0..<20_000).map { StoreKey("folder\($0 % 20)/\($0)") })
    var (reads, keys) = (0, 0)
    let listing = try await KeyListing(prefix: "", at: .from(""), folds: true) {
      let read = try store.keys(in: $0, limit: $1, order: $2)
      (reads, keys) = (reads + 1, keys + read.count)
      return read
    }
    #expect(listing.nodes.count == 20)
    #expect(reads <= 23)
    #expect(keys <= 60)
  }
}
