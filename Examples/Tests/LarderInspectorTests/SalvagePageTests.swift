import Foundation
import Hummingbird
import HummingbirdTesting
import Larder
import LarderExpiry
import LarderInspector
import LarderTesting
import Testing

/// The copy of the readable entries of a damaged store by a page.
@Suite struct SalvagePageTests {
  private let damaged = MemoryStore<[UInt8]>()
  private let rescued = MemoryStore<String>()

  private func write(_ count: Int, damaging lost: Set<Int> = []) throws {
    try damaged.apply(
      ChangeBatch((0..<count).map { .set(StoreKey(integer: $0), Array((lost.contains($0) ? "{" : "\"\($0)\"").utf8)) }))
  }

  private func inspected(into destination: some DataStore<String>) throws -> InspectedStore {
    let typed = damaged.typed(String.self, codec: .json())
    return try InspectedStore("users", typed, codec: .json()).salvaging(typed, into: destination)
  }

  @Test func `the readable entries are copied and the others are listed`() async throws {
    try write(2500, damaging: [7, 1200, 2499])
    try await withInspector([inspected(into: rescued)], allowsChanges: true) { browser in
      #expect(try await browser.text("damage?store=0&run=yes").contains("href=\"salvage?store=0\""))
      #expect(try await browser.text("keys?store=0").contains("href=\"salvage?store=0\""))
      var response = try await browser.post(["store": "0", "action": "salvage"])
      #expect(try await rescued.count() == 0, "it needs a confirmation")
      #expect(String(buffer: response.body).contains("must have no entries"))
      response = try await browser.submit(String(buffer: response.body))
      while response.status == .ok { response = try await browser.submit(String(buffer: response.body)) }
      #expect(response.status == .seeOther && response.headers[.location] == "salvage?store=0")
      let page = try await browser.text("salvage?store=0")
      #expect(page.contains("2,497 entries were copied.") && page.contains("3 keys or ranges could not be read"))
      #expect(page.contains(StoreKey(integer: 1200).hexadecimal) && !page.contains(StoreKey(integer: 1201).hexadecimal))
      #expect(try await rescued.count() == 2497 && rescued.value(forKey: StoreKey(integer: 2498)) == "2498")
      #expect(try await damaged.count() == 2500)

      response = try await browser.confirm(["store": "0", "action": "salvage"])
      #expect(response.status == .conflict)
      #expect(String(buffer: response.body).contains("already has entries"))
      #expect(try await browser.text("salvage?store=0").contains("2,497 entries were copied."))
    }
  }

  @Test func `a salvage that failed or was stopped continues by its page`() async throws {
    try write(30_000)
    let faulty = rescued.faulty()
    try await withInspector([inspected(into: faulty)], allowsChanges: true) { browser in
      faulty.schedule(.error(.full), on: .apply, number: 3)
      let failed = try await browser.confirm(["store": "0", "action": "salvage"])
      #expect(failed.status == .internalServerError && String(buffer: failed.body).contains("That did not work"))
      let page = try await browser.text("salvage?store=0")
      #expect(page.contains("200 entries were copied so far.") && page.contains("Continue"))

      let stopped = try await browser.submit(page)
      #expect(String(buffer: stopped.body).contains("10,200 entries copied and 0 lost so far."))
      var response = try await browser.submit(browser.text("salvage?store=0"))
      while response.status == .ok { response = try await browser.submit(String(buffer: response.body)) }
      #expect(try await rescued.count() == 30_000)
      #expect(try await !browser.text("salvage?store=0").contains("<form action=\"change\""))
      #expect(try await browser.submit(String(buffer: stopped.body)).status == .conflict, "it is at its end")
    }
  }

  @Test func `a form of another browser does not continue at another place`() async throws {
    try write(30_000)
    try await withInspector([inspected(into: rescued)], allowsChanges: true) { browser in
      let first = String(buffer: try await browser.confirm(["store": "0", "action": "salvage"]).body)
      #expect(try await browser.submit(first).status == .ok)
      #expect(try await browser.submit(first).status == .conflict)
      #expect(try await rescued.count() == 20_000)
    }
  }

  @Test func `entries that another program removes from the new store are missed`() async throws {
    try write(15_000)
    try await withInspector([inspected(into: rescued)], allowsChanges: true) { browser in
      let first = String(buffer: try await browser.confirm(["store": "0", "action": "salvage"]).body)
      try await rescued.removeAll()
      _ = try await browser.submit(first)
      let page = try await browser.text("salvage?store=0")
      #expect(page.contains("15,000 entries were copied.") && page.contains("The new store has only 5,000 entries."))
    }
  }

  @Test func `copies that lose deadlines or encryption are refused`() async throws {
    let sessions = MemoryStore<Expiring<String>>().expiring(.after(.seconds(60)))
    let inspected = InspectedStore("sessions", sessions, codec: .json())
    #expect(throws: StoreError.self) { try inspected.salvaging(sessions, into: rescued) }
    let (secret, plain) = (Labeled(base: damaged, form: .encrypted), Labeled(base: MemoryStore(), form: .plain))
    #expect(throws: StoreError.self) { try InspectedStore("s", secret).salvaging(secret, into: plain) }
    _ = try InspectedStore("s", secret).salvaging(secret, into: plain, allowsPlainCopies: true)
  }

  @Test func `deadlines are kept by the stores below`() async throws {
    let (old, new) = (MemoryStore<Expiring<String>>(), MemoryStore<Expiring<String>>())
    let sessions = old.expiring(.after(.seconds(60)))
    try await sessions.setValue("ada", forKey: "s")
    let store = try InspectedStore("sessions", sessions, codec: .json()).salvaging(old, into: new)
    try await withInspector([store], allowsChanges: true) { browser in
      _ = try await browser.confirm(["store": "0", "action": "salvage"])
      #expect(try await new.count() == 1 && new.value(forKey: "s") == old.value(forKey: "s"))
    }
  }

  @Test func `nothing is copied without the permission or a destination`() async throws {
    try write(3)
    try await withInspector([inspected(into: rescued)]) { browser in
      #expect(try await !browser.text("salvage?store=0").contains("<form action=\"change\""))
      let response = try await browser.post(["store": "0", "action": "salvage", "confirmed": "yes"])
      #expect(response.status == .forbidden)
    }
    try await withInspector([InspectedStore("users", damaged)], allowsChanges: true) { browser in
      #expect(try await browser.get("salvage?store=0").status == .notFound)
      let response = try await browser.post(["store": "0", "action": "salvage", "confirmed": "yes"])
      #expect(response.status == .notFound)
    }
    #expect(try await rescued.count() == 0)
  }

  @Test func `a step of no salvage is refused`() async throws {
    try write(3)
    try await withInspector([inspected(into: rescued)], allowsChanges: true) { browser in
      let response = try await browser.post([
        "store": "0", "action": "salvage", "confirmed": "yes", "continues": "yes", "after": "39",
      ])
      #expect(response.status == .conflict)
    }
    #expect(try await rescued.count() == 0)
  }

  /// A store that says how its values are stored.
  private struct Labeled: ForwardingStore {
    let base: MemoryStore<[UInt8]>
    let form: StoreInformation.ValuesAtRest

    var information: StoreInformation {
      var information = base.information
      information.valuesAtRest = form
      return information
    }

    func forward<Result>(
      _ operation: StoreOperation, of key: StoreKey?, _ body: nonisolated(nonsending) () async throws -> Result
    ) async throws -> Result {
      try await body()
    }
  }
}
