import ArgumentParser
import ExampleSupport
import Foundation

@main
struct ImageCacheTestCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "ImageCacheTest",
    abstract: "Test every store as a cache of images, and print how long each step takes.",
    discussion: """
      There are two rounds: one image under many keys, and a different one under each. Every image is stored, loaded, \
      cleared, and stored again with a synchronization each; then half of them are touched, and the others expire.
      """)

  @Option(help: "The number of images.")
  var count = 100

  @Option(help: "The folder to search for PNG files. Missing images are drawn.")
  var folder = "/usr/share"

  @Flag(help: "Print the results as JSON, times in nanoseconds.")
  var json = false

  func validate() throws {
    guard count >= 1 else { throw ValidationError("--count must be at least 1") }
  }

  func run() async throws {
    let collection = ImageCollection(count: count, folder: folder)
    var reports: [Report] = []
    for round in Round.allCases {
      let test = CacheTest(images: round.images(from: collection.images))
      var report = Report(round: round, images: test.images)
      for store in TestedStore.all {
        let result = try await TemporaryFolder.with { folder in
          try await test.run(on: store.open(folder), named: store.name)
        }
        report.results.append(result)
      }
      reports.append(report)
    }
    if json {
      try printJSON(reports)
    } else {
      print("\(collection.fileCount) images from files below \(folder), \(count - collection.fileCount) drawn\n")
      for report in reports { print("\(report)\n") }
    }
  }

  private func printJSON(_ reports: [Report]) throws {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.prettyPrinted, .sortedKeys]
    print(String(decoding: try encoder.encode(reports), as: UTF8.self))
  }
}
