import Foundation
import Workloads

/// Measures peak memory, in processes of their own.
enum MemoryMeasurement {
  private static let recordCount = 100_000

  /// Returns all selected measurements.
  static func comparisons(where isWanted: (String) -> Bool) async throws -> [Measured] {
    try await documents(where: isWanted) + caches(where: isWanted) + indexes(where: isWanted)
      + queues(where: isWanted)
  }

  /// Opens a `CompressedFileStore` of a million entries with keys of 17 bytes, and measures the memory for each entry.
  private static func indexes(where isWanted: (String) -> Bool) async throws -> [Measured] {
    let name = "memory of an open CompressedFileStore for each of 1,000,000 entries"
    guard isWanted(name) else { return [] }
    let count = 1_000_000
    let folder = try ScratchFolder()
    let path = folder.newPath()
    try await CompressedFiles.make(at: path, count: count)
    let above = try peak(of: "OpenDocument", ["compressed", path]) - peak(of: "OpenDocument", ["nothing", path])
    try folder.remove()
    return [
      Measured(
        name: name, figure: above / Double(count), unit: .bytes,
        yardsticks: [Measured.Yardstick(name: "limit", figure: 80, limit: 1)])
    ]
  }

  /// Fills caches with a million entries of sixteen bytes for key and value, and measures the additional memory for
  /// each entry.
  private static func caches(where isWanted: (String) -> Bool) throws -> [Measured] {
    let name = "memory of a MemoryCache for each of 1,000,000 entries, beyond key and value"
    guard isWanted(name) else { return [] }
    let count = 1_000_000
    let empty = try peak(of: "FillCache", ["nothing", "\(count)"])
    func overhead(_ way: String) throws -> Double {
      (try peak(of: "FillCache", [way, "\(count)"]) - empty) / Double(count) - 16
    }
    return [
      Measured(
        name: name, figure: try overhead("cache"), unit: .bytes,
        yardsticks: [
          Measured.Yardstick(name: "limit", figure: 100, limit: 1),
          Measured.Yardstick(name: "a Dictionary of as many", figure: try overhead("dictionary"), limit: nil),
        ])
    ]
  }

  /// Fills a queue with a million items, opens it again, and measures the whole memory of both processes.
  private static func queues(where isWanted: (String) -> Bool) throws -> [Measured] {
    let names = (
      filling: "peak memory of filling a QueueStore with 1,000,000 items of 200 bytes",
      opening: "and of opening it again"
    )
    guard isWanted(names.filling) else { return [] }
    let folder = try ScratchFolder()
    let path = folder.newPath()
    let filling = Double(try peakOfOneProcess("FillQueue", [path, "1000000"]))
    let opening = Double(try peakOfOneProcess("FillQueue", [path, "0"]))
    try folder.remove()
    let limit = Measured.Yardstick(name: "limit", figure: 150e6, limit: 1)
    return [
      Measured(name: names.filling, figure: filling, unit: .bytes, yardsticks: [limit]),
      Measured(name: names.opening, figure: opening, unit: .bytes, yardsticks: [limit]),
    ]
  }

  /// Opens documents, and measures the memory above that of a process that opens none.
  ///
  /// The yardstick is the size of the document.
  private static func documents(where isWanted: (String) -> Bool) throws -> [Measured] {
    let names = (
      sorted: "peak memory of opening a JSONFileStore of 100,000 records",
      shuffled: "peak memory of opening one whose records are in random order"
    )
    guard isWanted(names.sorted) || isWanted(names.shuffled) else { return [] }
    let folder = try ScratchFolder()
    let (sorted, shuffled) = (folder.newPath(), folder.newPath())
    try SampleRecords.writeDocument(at: sorted, count: recordCount)
    try SampleRecords.writeDocument(at: shuffled, count: recordCount, isShuffled: true)
    let size = try Double(Data(contentsOf: URL(filePath: sorted)).count)
    let empty = try peak(of: "OpenDocument", ["nothing", sorted])
    func above(_ way: String, _ path: String) throws -> Double { try peak(of: "OpenDocument", [way, path]) - empty }
    let document = Measured.Yardstick(name: "the document itself", figure: size, limit: 3)
    let measured = [
      Measured(
        name: names.sorted, figure: try above("store", sorted), unit: .bytes,
        yardsticks: [
          document,
          Measured.Yardstick(name: "Data(contentsOf:)", figure: try above("data", sorted), limit: nil),
          Measured.Yardstick(name: "JSONSerialization", figure: try above("serialization", sorted), limit: nil),
          Measured.Yardstick(name: "JSONDecoder", figure: try above("decoder", sorted), limit: nil),
        ]),
      Measured(name: names.shuffled, figure: try above("store", shuffled), unit: .bytes, yardsticks: [document]),
    ]
    try folder.remove()
    return measured
  }

  /// Returns the median of several processes.
  private static func peak(of program: String, _ arguments: [String]) throws -> Double {
    let peaks = try (0..<5).map { _ in try peakOfOneProcess(program, arguments) }
    return Double(peaks.sorted()[peaks.count / 2])
  }

  private static func peakOfOneProcess(_ program: String, _ arguments: [String]) throws -> Int {
    let process = Process()
    let programs = URL(filePath: CommandLine.arguments[0]).resolvingSymlinksInPath().deletingLastPathComponent()
    process.executableURL = programs.appending(path: program)
    process.arguments = arguments
    let output = Pipe()
    process.standardOutput = output
    try process.run()
    let text = try output.fileHandleForReading.readToEnd() ?? Data()
    process.waitUntilExit()
    guard process.terminationStatus == 0,
      let peak = Int(String(decoding: text, as: UTF8.self).trimmingCharacters(in: .newlines))
    else { throw CocoaError(.executableLoad) }
    return peak
  }
}
