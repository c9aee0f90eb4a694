#if LMDB && SQLite && os(Linux)
import Foundation
import Larder
import LarderLMDB
import LarderPostgres
import LarderSQLite
import TestSupport
import Testing

/// A process of a round, which is this test program with one test and a variable that describes its work.
struct RoundProcess: Codable, Sendable {
  private static let variable = "LARDER_COORDINATION_PROCESS"

  /// The work of this process, or `nil` if it runs tests.
  static let ofThisProcess: RoundProcess? = {
    guard let text = ProcessInfo.processInfo.environment[variable] else { return nil }
    return try? JSONDecoder().decode(RoundProcess.self, from: Data(text.utf8))
  }()

  let scheme: String
  let folder: String
  var number: Int
  /// The connection string and the schema of a PostgreSQL server.
  var connection: String
  let schema: String
  /// The duration of the work, in milliseconds.
  let duration: Double

  /// Opens the store, and returns it with the clock of its rate limits.
  func open() async throws -> (AnyDataStore<[UInt8]>, SharedClock) {
    switch scheme {
    case "lmdb":
      return (AnyDataStore(try await LMDBStore(path: folder + "/store", codec: .raw, durability: .buffered)), .boot)
    #if Postgres
    case "postgres":
      let database = try await PostgresDatabase(connection, schema: schema, timeout: .seconds(5))
      return (AnyDataStore(try await PostgresStore<[UInt8]>(in: database, codec: .raw)), database.serverClock)
    #endif
    default:
      return (AnyDataStore(try await SQLiteStore(path: folder + "/store", codec: .raw, durability: .buffered)), .boot)
    }
  }

  /// Starts a process with the same store.
  ///
  /// - Parameters:
  ///   - number: Its number.
  ///   - place: The place of the store.
  ///   - clock: Its real-time clock, or `nil` for that of the machine.
  func start(_ number: Int, at place: RoundPlace, clock: FakeClock?) throws -> pid_t {
    var process = self
    process.number = number
    var command: [String] = []
    #if Postgres
    if let networks = place.networks, networks.areThere, let server = place.server {
      let link = number / 2
      process.connection = try server.connectionString(host: networks.addresses[link])
      command = networks.command(in: link)
    }
    #endif
    let text = String(decoding: try JSONEncoder().encode(process), as: UTF8.self)
    return try TestProcess.start(
      "ProcessTests.workOfAProcess", variables: ["\(Self.variable)=\(text)"] + (clock?.variables ?? []), by: command,
      output: "\(folder)/output-\(number)")
  }

  /// Does the work of this process.
  func run() async throws {
    let (store, time) = try await open()
    try note(in: "process")
    try await waitUntil { FileManager.default.fileExists(atPath: folder + "/start") }
    let round = ProcessRound(
      store: store, folder: folder, number: number, time: time,
      // The first one works until it is killed.
      duration: number == 0 ? .seconds(3600) : .milliseconds(duration))
    try await round.work()
    // The clock of this one is set back, however late.
    if number == 2 { try await waitUntil { FileManager.default.fileExists(atPath: folder + "/set-back") } }
    try note(in: "ended")
    try await store.close()
  }

  /// Writes the time of the real-time clock into a file.
  private func note(in name: String) throws {
    let time = "\(Date.now.timeIntervalSince1970)"
    try time.write(toFile: "\(folder)/\(name)-\(number)", atomically: true, encoding: .utf8)
  }
}

/// A real-time clock for a process, whose other clocks and timers stay as they are.
///
/// The library libfaketime is not used, because version 0.9.10 also moves the timers of the monotonic clock.
struct FakeClock: Sendable {
  /// A library that is loaded before the C library, and adds an hour to its real-time clock or subtracts one.
  private static let source = """
    #include <fcntl.h>
    #include <stdlib.h>
    #include <sys/mman.h>
    #include <sys/syscall.h>
    #include <sys/time.h>
    #include <time.h>
    #include <unistd.h>
    static volatile const char *sign;
    __attribute__((constructor)) static void begin(void) {
      int file = open(getenv("LARDER_CLOCK"), O_RDONLY | O_CLOEXEC);
      void *map = mmap(0, 1, PROT_READ, MAP_SHARED, file, 0);
      close(file);
      if (map == MAP_FAILED) abort();
      sign = map;
    }
    static time_t error(void) { return !sign ? 0 : *sign == '-' ? -3600 : 3600; }
    int clock_gettime(clockid_t clock, struct timespec *now) {
      int result = syscall(SYS_clock_gettime, clock, now);
      if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) now->tv_sec += error();
      return result;
    }
    int gettimeofday(struct timeval *now, void *zone) {
      struct timespec time;
      if (clock_gettime(CLOCK_REALTIME, &time)) return -1;
      now->tv_sec = time.tv_sec;
      now->tv_usec = time.tv_nsec / 1000;
      return 0;
    }
    time_t time(time_t *now) {
      struct timespec time;
      clock_gettime(CLOCK_REALTIME, &time);
      if (now) *now = time.tv_sec;
      return time.tv_sec;
    }
    """

  private let file: String
  /// The functions of the clock, or `nil` if they cannot be compiled.
  private let functions: ReplacedFunctions?

  /// Creates a clock that is an hour ahead.
  ///
  /// Without a compiler, the clock is right, and the reason is printed.
  init(in folder: String) throws {
    file = folder + "/clock"
    try "+".write(toFile: file, atomically: true, encoding: .utf8)
    functions = try ReplacedFunctions(Self.source, in: folder)
  }

  /// Sets the clock back by two hours.
  func setBack() throws {
    // The process has mapped the file, so it is not replaced.
    let handle = try FileHandle(forWritingTo: URL(filePath: file))
    try handle.write(contentsOf: Data("-".utf8))
    try handle.close()
  }

  /// The environment variables of a process with the clock.
  var variables: [String] {
    functions.map { $0.variables + ["LARDER_CLOCK=\(file)"] } ?? []
  }

  /// Returns what is wrong with the times that a process has noted at its beginning and its end.
  func problems(of begin: String, _ end: String) throws -> [String] {
    guard functions != nil else { return [] }
    return try [(begin, 3_600.0), (end, -3_600.0)].compactMap { path, offset in
      let noted = Double(try String(contentsOfFile: path, encoding: .utf8)) ?? 0
      let difference = noted - Date.now.timeIntervalSince1970
      return abs(difference - offset) < 600 ? nil : "a clock was wrong by \(difference) seconds, not by \(offset)"
    }
  }
}
#endif
