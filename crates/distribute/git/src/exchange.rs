//! A request and its answer, as gix reads and writes them.

use std::cell::RefCell;
use std::io::{self, BufRead, Cursor, Read, Write};
use std::rc::Rc;

use reqwest::Response;

use super::http::{Link, check_status};

/// A request, before and after it is sent.
pub(super) enum Exchange {
    Waiting {
        request: reqwest::RequestBuilder,
        body: Vec<u8>,
    },
    Answered(Response),
    /// Its response was taken, or there is none.
    Over,
}

pub(super) struct Shared {
    pub(super) link: Link,
    pub(super) exchange: RefCell<Exchange>,
    /// Returned in place of the headers.
    pub(super) error: RefCell<Option<io::Error>>,
}

impl Shared {
    /// Sends the request, if that was not done yet.
    fn start(&self) -> io::Result<()> {
        if let Some(error) = self.error.take() {
            return Err(error);
        }
        // gix writes the body first and reads headers or body of the answer next, in either order:
        // whichever is read first sends the request.
        let taken = self.exchange.replace(Exchange::Over);
        let answered = match taken {
            Exchange::Waiting { request, body } => {
                let response = self
                    .link
                    .send(request.body(body))
                    .and_then(|response| check_status(&response).map(|()| response))
                    .map_err(|error| self.link.guard.fail(error))?;
                Exchange::Answered(response)
            }
            other => other,
        };
        *self.exchange.borrow_mut() = answered;
        Ok(())
    }
}

/// The body of a request, held until the answer is asked for.
pub(super) struct PostBody(pub(super) Rc<Shared>);

impl Write for PostBody {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut *self.0.exchange.borrow_mut() {
            Exchange::Waiting { body, .. } => body.write(bytes),
            _ => Err(io::Error::other("the request was sent already")),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Headers of an answer, a line each.
pub(super) struct Headers {
    shared: Rc<Shared>,
    lines: Option<Cursor<Vec<u8>>>,
}

impl Headers {
    fn lines(&mut self) -> io::Result<&mut Cursor<Vec<u8>>> {
        if self.lines.is_none() {
            self.shared.start()?;
            let mut lines = Vec::new();
            if let Exchange::Answered(response) = &*self.shared.exchange.borrow() {
                for (name, value) in response.headers() {
                    lines.extend_from_slice(name.as_str().as_bytes());
                    lines.push(b':');
                    lines.extend_from_slice(value.as_bytes());
                    lines.push(b'\n');
                }
            }
            self.lines = Some(Cursor::new(lines));
        }
        self.lines
            .as_mut()
            .ok_or_else(|| io::Error::other("no headers"))
    }
}

impl Read for Headers {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        self.lines()?.read(to)
    }
}

impl BufRead for Headers {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.lines()?.fill_buf()
    }

    fn consume(&mut self, bytes: usize) {
        if let Some(lines) = &mut self.lines {
            lines.consume(bytes);
        }
    }
}

pub(super) struct Body {
    shared: Rc<Shared>,
    response: Option<Response>,
    chunk: Cursor<bytes::Bytes>,
    is_over: bool,
}

impl Body {
    fn fill(&mut self) -> io::Result<()> {
        while !self.is_over && self.chunk.position() >= self.chunk.get_ref().len() as u64 {
            if self.response.is_none() {
                self.shared.start()?;
                if let Exchange::Answered(response) = self.shared.exchange.replace(Exchange::Over) {
                    self.response = Some(response);
                }
            }
            let Some(response) = &mut self.response else {
                self.is_over = true;
                break;
            };
            let link = &self.shared.link;
            let chunk = link
                .wait(response.chunk())
                .map_err(|error| link.guard.fail(error))?;
            link.guard
                .receive(chunk.as_ref().map_or(0, bytes::Bytes::len))?;
            match chunk {
                Some(chunk) => self.chunk = Cursor::new(chunk),
                None => self.is_over = true,
            }
        }
        Ok(())
    }
}

impl Read for Body {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        self.fill()?;
        self.chunk.read(to)
    }
}

impl BufRead for Body {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.fill()?;
        self.chunk.fill_buf()
    }

    fn consume(&mut self, bytes: usize) {
        self.chunk.consume(bytes);
    }
}

pub(super) fn halves(shared: &Rc<Shared>) -> (Headers, Body) {
    let headers = Headers {
        shared: Rc::clone(shared),
        lines: None,
    };
    let body = Body {
        shared: Rc::clone(shared),
        response: None,
        chunk: Cursor::new(bytes::Bytes::new()),
        is_over: false,
    };
    (headers, body)
}
