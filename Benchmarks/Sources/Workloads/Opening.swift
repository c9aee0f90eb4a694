import Foundation
import Larder
import LarderJSON

/// Opening a document.
enum Opening {
  private static let recordCount = 100_000

  static let comparisons = [
    Comparison(
      Workload("opening a JSONFileStore of 100,000 records") { folder in
        let path = folder.newPath()
        try SampleRecords.writeDocument(at: path, count: recordCount)
        return {
          let store = try await JSONFileStore<JSONText>(path: path, codec: .jsonText)
          try await store.close()
        }
      },
      beside: [
        Comparison.Yardstick(
          Workload("parsing such a document by JSONSerialization") { folder in
            let path = folder.newPath()
            try SampleRecords.writeDocument(at: path, count: recordCount)
            return {
              consume(try JSONSerialization.jsonObject(with: Data(contentsOf: URL(filePath: path))))
            }
          }),
        Comparison.Yardstick(
          Workload("reading such a document by Data(contentsOf:)") { folder in
            let path = folder.newPath()
            try SampleRecords.writeDocument(at: path, count: recordCount)
            return {
              consume(try Data(contentsOf: URL(filePath: path)))
            }
          }),
      ], roundCount: 7)
  ]
}
