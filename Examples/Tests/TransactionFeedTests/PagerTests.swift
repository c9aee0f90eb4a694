import Larder
import Testing

@testable import TransactionFeed

@Suite("The loads of a reader of pages")
struct PagerTests {
  private let second = PageCursor(after: "1", order: .descending)
  private let third = PageCursor(after: "2", order: .descending)

  @Test func `The first page is loaded on request, each further page as soon as the previous one is taken`() {
    var pager = Pager<String>()
    #expect(pager.takePage() == nil)
    #expect(pager.beginLoad() == .beginning)
    pager.finishLoad("page 1", next: second)
    #expect(pager.beginLoad() == nil)

    #expect(pager.takePage() == "page 1")
    #expect(pager.beginLoad() == .after(second))
    pager.finishLoad("page 2", next: third)
    #expect(pager.takePage() == "page 2")
    #expect(pager.beginLoad() == .after(third))
    #expect(!pager.isAtEnd)
    pager.finishLoad("page 3", next: nil)
    #expect(pager.takePage() == "page 3")
    #expect(pager.isAtEnd)
    #expect(pager.beginLoad() == nil)
    #expect(pager.takePage() == nil)
  }

  @Test func `One load runs at a time, and a page that was not requested is ignored`() {
    var pager = Pager<String>(start: .after(second))
    pager.finishLoad("from nowhere", next: nil)
    #expect(pager.takePage() == nil)
    #expect(pager.beginLoad() == .after(second))
    #expect(pager.beginLoad() == nil)
    pager.finishLoad("page 2", next: nil)
    pager.finishLoad("page 2 once more", next: third)
    #expect(pager.takePage() == "page 2")
    #expect(pager.isAtEnd)
  }

  @Test func `A failed load is requested again, and a loaded page stays`() {
    var pager = Pager<String>()
    #expect(pager.beginLoad() == .beginning)
    pager.failLoad()
    #expect(pager.takePage() == nil)
    #expect(pager.beginLoad() == .beginning)
    pager.finishLoad("page 1", next: nil)
    pager.failLoad()
    #expect(pager.takePage() == "page 1")
  }
}
