import ExampleSupport
import Foundation
import Larder
import LarderExpiry
import LarderTesting
import Testing

@testable import ImageCacheTest

@Suite("The test of a store as a cache of images")
struct CacheTestTests {
  private static let images = ImageCollection(count: 5, folder: "/nowhere").images

  @Test("Every store passes: all images are there at the end, and the touched half outlives the others")
  func passes() async throws {
    for store in TestedStore.all {
      for round in Round.allCases {
        let images = round.images(from: Self.images)
        let result = try await TemporaryFolder.with { folder in
          try await CacheTest(images: images).run(on: store.open(folder), named: store.name)
        }
        #expect(result.store == store.name)
        #expect(result.storedCount == 5 && result.liveCount == 2, "\(store.name)")
        #expect(Set(result.durations.keys) == Set(Step.allCases))
      }
    }
  }

  @Test func `A store that loses or changes an image, or keeps a removed one, fails`() async throws {
    let test = CacheTest(images: Self.images)
    await #expect(throws: CacheTestFailure.loadedSomethingElse) {
      try await test.run(on: ForgetfulStore(forgets: "set"), named: "")
    }
    await #expect(throws: CacheTestFailure.notCleared) {
      try await test.run(on: ForgetfulStore(forgets: "removeAll"), named: "")
    }
  }

  @Test("One round has the same image many times, the other each image once")
  func rounds() {
    #expect(Set(Round.oneImage.images(from: Self.images)).count == 1)
    #expect(Round.oneImage.images(from: Self.images).count == 5)
    #expect(Round.differentImages.images(from: Self.images) == Self.images)
  }

  @Test("The table and the JSON have a row for each store")
  func reports() throws {
    var report = Report(round: .oneImage, images: [Self.images[0], Self.images[0]])
    var result = CacheTestResult(store: "SomeStore")
    result.durations = [.load: .milliseconds(2), .store: .microseconds(15)]
    (result.storedCount, result.liveCount) = (2, 1)
    report.results = [result]
    let lines = report.description.split(separator: "\n")
    #expect(lines.first == "One image 2 times, 55.6 kB")
    #expect(lines.last?.split(separator: " ").first == "SomeStore")
    #expect(lines.last?.contains("15.0 µs") == true && lines.last?.contains("2.0 ms") == true)

    let json = try JSONSerialization.jsonObject(with: JSONEncoder().encode(report)) as? [String: Any]
    #expect(json?["round"] as? String == "oneImage" && json?["imageCount"] as? Int == 2)
    let results = try #require((json?["results"] as? [[String: Any]])?.first)
    #expect(results["store"] as? String == "SomeStore")
    #expect(results["nanoseconds"] as? [String: Int] == ["load": 2_000_000, "store": 15_000])
    #expect(results["storedCount"] as? Int == 2 && results["liveCount"] as? Int == 1)
  }
}
