#[path = "../../../crates/intent/tests/adversary/mod.rs"]
mod adversary;
use holdfast_intent::*;
fn cpu()->f64{let t=rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime); t.tv_sec as f64+t.tv_nsec as f64*1e-9}
fn time(p:&Parser,t:&str)->f64{ let b=cpu(); let r=p.parse(t,FinishReason::Unknown); let s=cpu()-b; std::hint::black_box(r); s}
fn main(){
  let a:Vec<String>=std::env::args().collect();
  let big:usize=a[1].parse().unwrap();
  for s in Strategy::ALL{
    if a.len()>2 && a[2]!=s.name() {continue;}
    let p=Parser::default().with_strategies(s,None);
    for (n,piece) in adversary::REPEATED{
      if a.len()>3 && !n.contains(a[3].as_str()) {continue;}
      let small=adversary::repeated(piece,10_000);
      let s1=(0..30).map(|_|time(&p,&small)).fold(9.0,f64::min);
      let large=adversary::repeated(piece,big);
      let s2=(0..if big>2000000{1}else{2}).map(|_|time(&p,&large)).fold(99.0,f64::min);
      let r=(s2/large.len() as f64)/(s1/small.len() as f64);
      let slow=large.len() as f64/s2/1e6;
      if a.len()>3 || r>1.4 || slow<15.0 { println!("{:<12} {:<34} small {:>8.1} MB/s large {:>8.1} MB/s ratio {:.2}",s.name(),n,small.len() as f64/s1/1e6,slow,r);}
    }
  }
}
