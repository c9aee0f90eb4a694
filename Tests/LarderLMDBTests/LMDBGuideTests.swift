#if LMDB
import Foundation
import Larder
import LarderCBOR
import LarderLMDB
import LarderTesting
import TestSupport
import Testing

/// The Swift code of the guide `Modules/Stores/LarderLMDB/LarderLMDB.docc/UsingLMDBStore.md`.
///
/// `Scripts/guide-code` writes it into the guide.
@Suite struct LMDBGuideTests {
  struct User: Codable, Equatable {
    var name: String
  }

  struct Customer: Codable {
    var name: String
    var orderCount = 0
  }

  struct Order: Codable {
    var item: String
  }

  struct NoSuchCustomer: Error {}

  private func encodedSize<Value: Codable & Sendable>(_ value: Value) throws -> Int {
    var bytes: [UInt8] = []
    try CBORCodec<Value>().encode(value, into: &bytes)
    return bytes.count
  }

  @Test func `a store alone`() async throws {
    let location = try ConformanceLocation()
    let folder = location.folder
    // snippet.overview
    let users = try await LMDBStore<User>(path: folder + "/users")
    try await users.setValue(User(name: "Ada"), forKey: "user:1")
    let user = try users.value(forKey: "user:1")
    try await users.close()
    // snippet.end
    #expect(user == User(name: "Ada"))

    // snippet.reading-only
    let archive = try await LMDBStore<User>(path: folder + "/users", access: .readOnly)
    // snippet.end
    #expect(try archive.value(forKey: "user:1") == user)
    try await archive.close()
    try location.remove()
  }

  @Test func `several stores`() async throws {
    let location = try ConformanceLocation()
    let folder = location.folder
    // snippet.environments-and-transactions-4
    let environment = try await LMDBEnvironment(path: folder + "/shop")
    let customers = try await LMDBStore<Customer>(in: environment, name: "customers")
    let orders = try await LMDBStore<Order>(in: environment, name: "orders")
    // snippet.end
    // snippet.environments-and-transactions-3
    let returns = try await LMDBStore<Order>(in: environment, name: "returns", contents: "orders")
    // snippet.end
    #expect(try returns.count(in: .all) == 0)
    await expectStoreError(.versionMismatch) {
      try await LMDBStore<Order>(in: environment, name: "returns", contents: "customers")
    }
    try await customers.setValue(Customer(name: "Ada", orderCount: 1), forKey: "7")
    try await orders.apply([
      .set("6/1", Order(item: "x")), .set("7/1", Order(item: "chair")), .set("8", Order(item: "")),
    ])

    // snippet.environments-and-transactions-2
    let orderCount = try await environment.write { transaction in
      guard var customer = try transaction.value(forKey: "7", in: customers) else { throw NoSuchCustomer() }
      customer.orderCount += 1
      try transaction.setValue(customer, forKey: "7", in: customers)
      try transaction.setValue(Order(item: "lamp"), forKey: "7/\(customer.orderCount)", in: orders)
      return customer.orderCount
    }
    // snippet.end
    #expect(orderCount == 2)

    // snippet.environments-and-transactions
    let (name, ordersOf7) = try environment.read { transaction in
      (
        try transaction.value(forKey: "7", in: customers)?.name,
        try transaction.count(in: .prefix("7/"), of: orders)
      )
    }
    // snippet.end
    #expect(name == "Ada")
    #expect(ordersOf7 == 2)

    // snippet.bytes-without-copies-2
    let length = try environment.read { transaction in
      try transaction.withBytes(forKey: "7", in: customers) { bytes in bytes?.byteCount }
    }
    // snippet.end
    #expect(try length == encodedSize(Customer(name: "Ada", orderCount: 2)))

    // snippet.bytes-without-copies
    let sizes = try environment.read { transaction in
      try transaction.withCursor(of: orders) { cursor in
        let range = KeyRange.prefix("7/")
        var sizes: [Int] = []
        var isThere = try cursor.move(upTo: range.lowerBound)
        while isThere, let key = cursor.key, range.contains(key) {
          sizes.append(cursor.withEntryBytes { _, value in value.byteCount } ?? 0)
          isThere = try cursor.moveToNext()
        }
        return sizes
      }
    }
    // snippet.end
    #expect(try sizes == [encodedSize(Order(item: "chair")), encodedSize(Order(item: "lamp"))])

    // snippet.backup
    try await environment.backup(to: folder + "/shop-monday")
    try await environment.backup(to: folder + "/shop-small", compacting: true)
    // snippet.end
    try await environment.close()
    for copy in ["/shop-monday", "/shop-small"] {
      let store = try await LMDBStore<Order>(
        path: folder + copy, name: "orders", createsIfMissing: false)
      #expect(try store.value(forKey: "7/2")?.item == "lamp")
      try await store.close()
    }
    try location.remove()
  }

  @Test func `damage of values is found`() async throws {
    let location = try ConformanceLocation()
    let folder = location.folder
    // snippet.limitations
    let careful = try await LMDBStore<Customer>(
      path: folder + "/careful", codec: .cbor(Customer.self).checksummed())
    // snippet.end
    let plain = try await LMDBStore<Customer>(path: folder + "/plain")
    for store in [careful, plain] {
      try await store.setValue(Customer(name: "Grace"), forKey: "6")
      try await store.setValue(Customer(name: "Ada"), forKey: "7")
      try await store.close()
    }

    // Damage as by a failing disk: one letter of a name changes, in every copy of the page.
    for path in ["/careful/data.mdb", "/plain/data.mdb"] {
      let file = URL(filePath: folder + path)
      var bytes = try Data(contentsOf: file)
      var places = 0
      while let place = bytes.range(of: Data("Ada".utf8)) {
        bytes.replaceSubrange(place, with: Data("Ida".utf8))
        places += 1
      }
      #expect(places > 0)
      try bytes.write(to: file)
    }

    let unaware = try await LMDBStore<Customer>(path: folder + "/plain")
    #expect(try unaware.value(forKey: "7")?.name == "Ida")
    try await unaware.close()
    let aware = try await LMDBStore<Customer>(
      path: folder + "/careful", codec: .cbor(Customer.self).checksummed())
    let error = #expect(throws: StoreError.self) { try aware.value(forKey: "7") }
    #expect(error?.code == .corrupted)
    #expect(error?.key == "7")
    #expect(error?.underlying is ChecksumError)
    #expect(try aware.value(forKey: "6")?.name == "Grace")
    #expect(try await aware.verify().findings.map(\.key) == ["7"])
    try await aware.close()

    // The store is not mistaken for one without checksums.
    let refusal = await #expect(throws: StoreError.self) {
      try await LMDBStore<Customer>(path: folder + "/careful")
    }
    #expect(refusal?.code == .versionMismatch)
    try location.remove()
  }

  @Test func migration() async throws {
    let location = try ConformanceLocation()
    let folder = location.folder
    let store = try await LMDBStore<Int>(path: folder + "/shop")
    try await store.setValue(1, forKey: "a")
    try await store.close()

    // snippet.migrating
    let migration = try await LMDBEnvironment.migrate(from: folder + "/shop", to: folder + "/shop-new")
    print(migration.oldVersion, migration.newVersion, migration.entryCount)
    // snippet.end

    let migrated = try await LMDBStore<Int>(path: folder + "/shop-new")
    #expect(try migrated.value(forKey: "a") == 1)
    try await migrated.close()
    try location.remove()
  }
}
#endif
