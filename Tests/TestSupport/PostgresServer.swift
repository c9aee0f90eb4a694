import Foundation
import Larder
import LarderFiles

/// A PostgreSQL server for tests.
///
/// A server runs in a folder of its own below `/tmp` and listens only on a Unix socket in that folder. It ends, and its
/// folder is removed, when this process ends, even by SIGKILL.
package final class PostgresServer: Sendable {
  /// How a server ends.
  package enum StopMode: String, Sendable {
    /// Ends the sessions, and writes a checkpoint.
    case fast
    /// Ends all processes without a checkpoint, as after a crash. The next start recovers from the log.
    case immediate
  }

  /// The server that all tests of this process share: ``local``, or that of the environment variable `LARDER_POSTGRES`,
  /// a connection string.
  ///
  /// The schemas that tests create in a server of `LARDER_POSTGRES` stay there, so give it a database of its own.
  package static var shared: PostgresServer {
    get async throws { if let external { external } else { try await local } }
  }

  /// The server of this process, which is started by the first test that uses it.
  package static var local: PostgresServer { get async throws { try await localTask.value } }

  /// A Boolean value that indicates whether ``shared`` is the server of `LARDER_POSTGRES`.
  package static var isExternal: Bool { external != nil }

  private static let external: PostgresServer? = {
    let string = ProcessInfo.processInfo.environment["LARDER_POSTGRES", default: ""]
    return string.isEmpty ? nil : PostgresServer(connectionString: string, cluster: nil)
  }()
  private static let localTask = Task.detached { try await PostgresServer() }

  /// A Boolean value that indicates whether this machine has a PostgreSQL server.
  package static var isInstalled: Bool { (try? PostgresInstallation()) != nil }

  /// The connection string for libpq.
  package let connectionString: String

  private let cluster: Cluster?
  /// Runs one request for a schema at a time.
  private let schemaExecutor = DispatchQueueExecutor(label: "PostgresServer.schemas")
  private let freeSchemas = Locked<[String]>([])

  /// Creates and starts a server with an empty database.
  ///
  /// - Parameter settings: Server parameters by their names, such as `["fsync": "off"]`. Defaults to those of PostgreSQL,
  ///   except for `max_connections`, which defaults to 200, and `listen_addresses`, which defaults to an empty list.
  package convenience init(settings: [String: String] = [:]) async throws {
    let cluster = try await PostgresServer.run {
      let cluster = try Cluster(port: settings["port"])
      try cluster.run("initdb", ["-U", "larder", "-A", "trust", "--no-sync", "--locale=C", "-E", "UTF8"])
      try cluster.append(
        ["listen_addresses": "", "port": cluster.port, "max_connections": "200"].merging(settings) { $1 })
      return cluster
    }
    self.init(connectionString: cluster.connectionString, cluster: cluster)
    try await start()
  }

  private init(connectionString: String, cluster: Cluster?) {
    self.connectionString = connectionString
    self.cluster = cluster
  }

  /// The folder with the server's socket, `.s.PGSQL.5432`, and with its data in `data`.
  ///
  /// - Throws: ``PostgresFailure`` for the server of `LARDER_POSTGRES`.
  package var folder: String { get throws { try ownCluster.folder.path } }

  /// Runs SQL with `psql` and returns the rows, one for each line, with `|` between columns.
  ///
  /// The statements run outside a transaction block, and the first one that fails ends the run.
  ///
  /// - Parameters:
  ///   - sql: The statements.
  ///   - connectionString: The connection string. Defaults to that of the server; a proxy has another one.
  /// - Throws: ``PostgresFailure`` with the errors of `psql`.
  @discardableResult
  package func run(psql sql: String, connectionString: String? = nil) async throws -> String {
    try await PostgresServer.run { try self.psql(sql, connectionString ?? self.connectionString) }
  }

  /// Runs `pgbench` and returns its output and status.
  ///
  /// - Parameters:
  ///   - arguments: The arguments before the connection string.
  ///   - connectionString: The connection string. Defaults to that of the server.
  package func run(pgbench arguments: [String], connectionString: String? = nil) async throws -> CommandRun {
    let command = [program("pgbench")] + arguments + [connectionString ?? self.connectionString]
    return try await PostgresServer.run { try CommandRun(command) }
  }

  /// Runs `pg_dump` and returns the SQL of a schema, without the commands that only new versions of `psql` know.
  package func dump(schema: String) async throws -> String {
    let command = [
      program("pg_dump"), "--schema", schema, "--no-owner", "--no-privileges", "--inserts", "-d", connectionString,
    ]
    return try await PostgresServer.run {
      let run = try CommandRun(command)
      guard run.status == 0 else { throw PostgresFailure("pg_dump fails with status \(run.status): \(run.errors)") }
      return run.output.split(separator: "\n", omittingEmptySubsequences: false)
        .filter { !$0.hasPrefix("\\") && !$0.hasPrefix("SET transaction_timeout") }.joined(separator: "\n")
    }
  }

  /// Creates an empty schema and returns its name, which needs no quotation marks.
  package func newSchema() async throws -> String {
    try await schemaExecutor.run {
      if let schema = self.freeSchemas.withLock({ $0.popLast() }) { return schema }
      // A run of psql takes longer than 16 schemas.
      let names = (0..<16).map { _ in "larder_test_" + String(UInt64.random(in: 0 ... .max), radix: 36) }
      try self.psql(names.map { "CREATE SCHEMA \($0);" }.joined(separator: "\n"), self.connectionString)
      self.freeSchemas.withLock { $0 = names.dropLast() }
      return names[names.count - 1]
    }
  }

  // MARK: - Own servers

  /// Returns the connection string for an address on which the server listens.
  ///
  /// - Throws: ``PostgresFailure`` for the server of `LARDER_POSTGRES`.
  package func connectionString(host: String) throws -> String {
    PostgresServer.connectionString(folder: host, port: try ownCluster.port)
  }

  /// Returns the connection string for a socket in a folder.
  static func connectionString(folder: String, port: String = "5432") -> String {
    "host=\(folder) port=\(port) user=larder dbname=postgres"
  }

  /// Starts the server after ``stop(_:)``, and returns when it accepts connections.
  package func start() async throws {
    try await control("start", "-w", "-l", "\(folder)/log")
  }

  /// Stops the server, and returns when all its processes have ended.
  package func stop(_ mode: StopMode = .fast) async throws {
    try await control("stop", "-w", "-m", mode.rawValue)
  }

  /// Stops and starts the server.
  package func restart(_ mode: StopMode = .fast) async throws {
    try await stop(mode)
    try await start()
  }

  /// Creates a file that the server can read, or replaces it.
  ///
  /// - Parameters:
  ///   - name: The path in the server's folder, such as `data/pg_hba.conf`.
  ///   - text: The content.
  package func write(_ text: String, to name: String) throws {
    let path = "\(try folder)/\(name)"
    try text.write(toFile: path, atomically: true, encoding: .utf8)
    try PostgresServer.giveToServer(path)
  }

  /// Changes the owner of a file or folder to the user of servers, who alone can then read it.
  package static func giveToServer(_ path: String) throws {
    var isFolder: ObjCBool = false
    _ = FileManager.default.fileExists(atPath: path, isDirectory: &isFolder)
    var attributes: [FileAttributeKey: Any] = [.posixPermissions: isFolder.boolValue ? 0o700 : 0o600]
    if PostgresInstallation.isRoot {
      attributes[.ownerAccountName] = "postgres"
      attributes[.groupOwnerAccountName] = "postgres"
    }
    try FileManager.default.setAttributes(attributes, ofItemAtPath: path)
  }

  /// Turns a standby into a primary, and returns when it accepts writes.
  package func promote() async throws {
    try await control("promote", "-w")
  }

  /// Sets server parameters of a running server that need no restart.
  package func set(_ settings: [String: String]) async throws {
    let cluster = try ownCluster
    try await PostgresServer.run {
      try cluster.append(settings)
      try cluster.run("pg_ctl", ["reload"])
    }
  }

  /// Stops the server and removes its folder, which otherwise happens when this process ends or the last reference to
  /// the server is released.
  ///
  /// A second call does nothing.
  package func close() async throws {
    let cluster = try ownCluster
    try await PostgresServer.run {
      if cluster.isRunning { try cluster.run("pg_ctl", ["stop", "-w", "-m", StopMode.immediate.rawValue]) }
      try cluster.folder.remove()
    }
  }

  /// Creates and starts a standby that replicates the server.
  ///
  /// - Parameters:
  ///   - name: The name of the standby in `pg_stat_replication`.
  ///   - isSynchronous: A Boolean value that indicates whether the server acknowledges a commit only after the standby
  ///     has made it durable, as `synchronous_standby_names` says. Defaults to `false`.
  ///   - isColdCopy: A Boolean value that indicates whether the standby begins with a copy of the files of the stopped
  ///     server, which has the same identity, instead of a base backup. Defaults to `false`.
  ///   - port: The port. Defaults to that of the server, which both can have if they listen in their folders only.
  /// - Returns: The standby, after it has reached the state of the server.
  package func addStandby(
    named name: String = "standby", isSynchronous: Bool = false, isColdCopy: Bool = false, port: String? = nil
  ) async throws -> PostgresServer {
    // The checkpoint of the base backup proves that the server has read the new value. From then on, commits wait for the
    // standby.
    if isSynchronous { try await set(["synchronous_standby_names": name]) }
    let source = "\(connectionString) application_name=\(name)"
    let port = try port ?? ownCluster.port
    if isColdCopy { try await stop() }
    let cluster = try await PostgresServer.run { [folder = try folder] in
      let cluster = try Cluster(port: port)
      if isColdCopy {
        let data = "\(cluster.folder.path)/data"
        let copy = try CommandRun(["cp", "-a", "\(folder)/data", data])
        guard copy.status == 0 else { throw PostgresFailure("cp fails: \(copy.errors)") }
        try "".write(toFile: "\(data)/standby.signal", atomically: true, encoding: .utf8)
        try PostgresServer.giveToServer("\(data)/standby.signal")
      } else {
        try cluster.run("pg_basebackup", ["-d", source, "-R", "-X", "stream", "-c", "fast", "--no-sync"])
      }
      try cluster.append(
        ["synchronous_standby_names": "", "port": port].merging(isColdCopy ? ["primary_conninfo": source] : [:]) { $1 })
      return cluster
    }
    if isColdCopy { try await start() }
    let standby = PostgresServer(connectionString: cluster.connectionString, cluster: cluster)
    try await standby.start()
    try await run(
      psql: """
        DO $$ BEGIN
          FOR i IN 1..3000 LOOP
            -- Otherwise a transaction sees only the connections of its first look.
            PERFORM pg_stat_clear_snapshot();
            PERFORM FROM pg_stat_replication WHERE application_name = '\(name)' AND state = 'streaming'
              AND (sync_state = 'sync' OR NOT \(isSynchronous));
            IF FOUND THEN RETURN; END IF;
            PERFORM pg_sleep(0.01);
          END LOOP;
          RAISE 'the standby \(name) does not replicate';
        END $$
        """)
    return standby
  }

  /// Runs SQL, and blocks the thread until its end.
  @discardableResult
  private func psql(_ sql: String, _ connectionString: String) throws -> String {
    let run = try CommandRun(
      [program("psql"), "-X", "-q", "-A", "-t", "-w", "-v", "ON_ERROR_STOP=1", "-d", connectionString], input: sql)
    guard run.status == 0 else { throw PostgresFailure("psql fails with status \(run.status): \(run.errors)") }
    return run.output.hasSuffix("\n") ? String(run.output.dropLast()) : run.output
  }

  private func program(_ name: String) -> String {
    // Debian's programs on the path are scripts in Perl that start those of the installation.
    cluster.map { "\($0.installation.programs)/\(name)" } ?? name
  }

  private var ownCluster: Cluster {
    get throws {
      guard let cluster else { throw PostgresFailure("the server of LARDER_POSTGRES belongs to another process") }
      return cluster
    }
  }

  private func control(_ arguments: String...) async throws {
    let cluster = try ownCluster
    try await PostgresServer.run { try cluster.run("pg_ctl", arguments) }
  }

  /// Runs a closure that blocks, outside the cooperative pool.
  private static func run<Result: Sendable>(_ body: @escaping @Sendable () throws -> Result) async throws -> Result {
    try await DispatchQueueExecutor(label: "PostgresServer").run(body)
  }
}

/// The data of a server of this process, and the programs that work on it.
private struct Cluster: Sendable {
  let installation: PostgresInstallation
  let folder: PostgresFolder
  let port: String

  init(port: String?) throws {
    self.port = port ?? "5432"
    installation = try PostgresInstallation()
    folder = try PostgresFolder(installation)
  }

  var connectionString: String { PostgresServer.connectionString(folder: folder.path, port: port) }

  /// A Boolean value that indicates whether the server has its lock file, which it removes at its end.
  var isRunning: Bool { FileManager.default.fileExists(atPath: "\(data)/postmaster.pid") }

  private var data: String { "\(folder.path)/data" }

  /// Runs a program on the data, and blocks the thread until its end.
  func run(_ program: String, _ arguments: [String]) throws {
    try installation.run(program, arguments + ["-D", data], in: folder.path)
  }

  /// Appends parameters to the configuration, of which the last value is valid.
  func append(_ settings: [String: String]) throws {
    let all = settings.merging(["unix_socket_directories": folder.path]) { $1 }
    let lines = all.sorted { $0.key < $1.key }.map { "\($0) = '\($1.replacing("'", with: "''"))'\n" }
    let file = try FileHandle(forWritingTo: URL(filePath: "\(data)/postgresql.conf"))
    defer { file.closeFile() }
    try file.seekToEnd()
    try file.write(contentsOf: Data(lines.joined().utf8))
  }
}
