#if Postgres
import Foundation
import Larder
import LarderPostgres
import TestSupport
import Testing

/// The errors of servers of special settings: encryption, passwords, replication.
@Suite struct ServerErrorTests {
  /// Expects an error that says that nothing was changed, and returns its text.
  @discardableResult
  private func expectError(
    _ code: StoreError.Code, sourceLocation: SourceLocation = #_sourceLocation, _ body: () async throws -> Void
  ) async -> String {
    let error = await expectStoreError(code, sourceLocation: sourceLocation, body)
    #expect(error?.outcome == .nothingChanged, sourceLocation: sourceLocation)
    return error?.detailedDescription ?? ""
  }

  // MARK: Encryption

  /// Creates a key and a certificate that it has signed, in files of the server's folder.
  private static func makeCertificate(_ name: String, for server: PostgresServer) throws {
    let path = "\(try server.folder)/\(name)"
    let run = try CommandRun([
      "openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost", "-addext",
      "subjectAltName=DNS:localhost", "-keyout", "\(path).key", "-out", "\(path).crt",
    ])
    try #require(run.status == 0, "\(run.errors)")
    for type in ["key", "crt"] { try PostgresServer.giveToServer("\(path).\(type)") }
  }

  /// A port that no process uses now.
  private static func freePort() throws -> UInt16 {
    let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    defer { close(descriptor) }
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = UInt32(INADDR_LOOPBACK).bigEndian
    var size = socklen_t(MemoryLayout<sockaddr_in>.size)
    let code = withUnsafeMutablePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
        bind(descriptor, address, size) == 0 ? getsockname(descriptor, address, &size) : -1
      }
    }
    try #require(code == 0)
    return UInt16(bigEndian: address.sin_port)
  }

  @Test func `connections are encrypted and the server is known`() async throws {
    let port = try ServerErrorTests.freePort()
    try await PostgresServer.withOwn(settings: ["listen_addresses": "127.0.0.1", "port": "\(port)"]) { server in
      let folder = try server.folder
      let connection = "host=localhost hostaddr=127.0.0.1 port=\(port) user=larder dbname=postgres sslmode=verify-full"
      for name in ["own", "other"] { try ServerErrorTests.makeCertificate(name, for: server) }
      let plain = await expectError(.ioFailed) {
        _ = try await PostgresDatabase("\(connection) sslrootcert=\(folder)/own.crt")
      }
      #expect(plain.contains("SSL"), "the server has no certificate")
      try await server.set(["ssl": "on", "ssl_cert_file": "\(folder)/own.crt", "ssl_key_file": "\(folder)/own.key"])
      // The server reads its settings some time after it was told to.
      try await waitUntil { try await server.run(psql: "SHOW ssl") == "on" }
      let database = try await PostgresDatabase("\(connection) sslrootcert=\(folder)/own.crt")
      let store = try await PostgresStore<Int>(in: database)
      try await store.setValue(1, forKey: "k")
      let rows = try await database.read { transaction in
        try await transaction.execute("SELECT ssl::text, version FROM pg_stat_ssl WHERE pid = pg_backend_pid()")
      }
      #expect(rows.first?["ssl"] == "true")
      #expect(rows.first?["version"]?.hasPrefix("TLSv1.") == true)
      await database.close()
      let unknown = await expectError(.ioFailed) {
        _ = try await PostgresDatabase("\(connection) sslrootcert=\(folder)/other.crt")
      }
      #expect(unknown.contains("certificate verify failed"))
      let missing = await expectError(.ioFailed) {
        _ = try await PostgresDatabase("\(connection) sslrootcert=\(folder)/none.crt")
      }
      #expect(missing.contains("none.crt"))
    }
  }

  // MARK: Passwords

  @Test func `a password is asked for and never shown`() async throws {
    try await PostgresServer.withOwn { server in
      try await server.run(
        psql: "CREATE ROLE guarded LOGIN PASSWORD 'open sesame'; CREATE SCHEMA s AUTHORIZATION guarded")
      try server.write("local all guarded scram-sha-256\nlocal all all trust\n", to: "data/pg_hba.conf")
      try await server.set([:])
      let connection = "\(server.connectionString) user=guarded"
      try await waitUntil {
        try await server.run(psql: "SELECT count(*) FROM pg_hba_file_rules WHERE user_name = '{guarded}'") != "0"
      }
      let folder = try TemporaryFolder()
      func connect(_ more: String) async throws {
        let database = try await PostgresDatabase("\(connection) \(more)", schema: "s")
        let store = try await PostgresStore<Int>(in: database)
        try await store.setValue(1, forKey: "k")
        #expect(!"\(database) \(database.name) \(store) \(store.information)".contains("sesame"))
        await database.close()
      }
      // The server may still answer by its old rules.
      try await waitUntil { (try? await connect("password=wrong")) == nil }
      try await connect("password='open sesame'")
      for (name, password) in [("right", "open sesame"), ("wrong", "close sesame")] {
        try "*:*:*:guarded:\(password)\n".write(toFile: folder.path(name), atomically: true, encoding: .utf8)
        try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: folder.path(name))
      }
      try await connect("passfile=\(folder.path("right"))")
      for more in ["password='close sesame'", "passfile=\(folder.path("wrong"))"] {
        let text = await expectError(.notPermitted) { try await connect(more) }
        #expect(!text.contains("sesame"))
      }
      await expectError(.notPermitted) { try await connect("passfile=\(folder.path("none"))") }
      // The environment belongs to the whole process.
      await #expect(processExitsWith: .success) { [connection = connection as String] in
        setenv("PGPASSWORD", "open sesame", 1)
        let database = try await PostgresDatabase(connection, schema: "s")
        try await PostgresStore<Int>(in: database).setValue(2, forKey: "k")
        await database.close()
      }
    }
  }

  // MARK: Replication

  @Test func `a standby is only read`() async throws {
    try await PostgresServer.withOwn { primary in
      let schema = try await primary.newSchema()
      let database = try await PostgresDatabase(primary.connectionString, schema: schema)
      let store = try await PostgresStore<Int>(in: database, name: "numbers")
      try await store.setValue(1, forKey: "k")
      let queue = try await PostgresQueue<Int>(in: database, name: "queue")
      try await queue.enqueue(1, id: "a")
      let standby = try await primary.addStandby(isSynchronous: true)
      // The standby has everything that was written before this.
      try await store.setValue(2, forKey: "other")
      for access in [StoreAccess.readWrite, .readOnly] {
        let copy = try await PostgresDatabase(standby.connectionString, schema: schema, access: access)
        let numbers = try await PostgresStore<Int>(in: copy, name: "numbers")
        try await waitUntil { try await numbers.value(forKey: "other") == 2 }
        #expect(try await numbers.value(forKey: "k") == 1)
        await expectError(.notPermitted) { try await numbers.setValue(3, forKey: "k") }
        await expectError(.notPermitted) { try await numbers.update(["k"]) { $0[0] = 3 } }
        await expectError(.notPermitted) { try await copy.write { try await $0.setValue(3, forKey: "k", in: numbers) } }
        if access == .readOnly {
          let items = try await PostgresQueue<Int>(in: copy, name: "queue")
          #expect(try await items.value(forKey: "a") == 1)
          await expectError(.notPermitted) { try await items.enqueue(2) }
          await expectError(.notPermitted) { _ = try await items.receive(lease: .seconds(1)) }
        } else {
          await expectError(.notPermitted) { _ = try await PostgresQueue<Int>(in: copy, name: "queue") }
          await expectError(.notPermitted) { _ = try await PostgresStore<Int>(in: copy, name: "new") }
        }
        await copy.close()
      }
      await expectError(.ioFailed) {
        _ = try await PostgresDatabase("\(standby.connectionString) target_session_attrs=read-write", schema: schema)
      }
      #expect(try await store.value(forKey: "k") == 1)
      await database.close()
      try await standby.close()
    }
  }

  // MARK: Tables

  @Test func `a table of a queue that is gone is a conflict`() async throws {
    try await Setting.run { setting in
      let queue = try await PostgresQueue<Int>(in: setting.database, name: "queue")
      try await queue.enqueue(1)
      let delivery = try #require(try await queue.receive(lease: .seconds(600)))
      try await setting.psql("ALTER TABLE queue RENAME TO hidden")
      await expectError(.conflict) { try await queue.enqueue(2) }
      await expectError(.conflict) { _ = try await queue.receive(lease: .seconds(1)) }
      await expectError(.conflict) { _ = try await queue.nextDelivery(lease: .seconds(1)).get() }
      await expectError(.conflict) { try await queue.acknowledge(delivery.receipt) }
      try await setting.psql("ALTER TABLE hidden RENAME TO queue")
      try await queue.acknowledge(delivery.receipt)
      #expect(try await queue.counts() == QueueCounts())
    }
  }
}
#endif
